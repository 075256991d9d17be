/** What a function of the language is, before it is called. */
export interface ScriptFunction {
  readonly id: number
  readonly arity: 0 | 1 | 2
}

/** Every name of each function. The position here is its number in a program: see `script_call` in the migration. */
const definitions: readonly (readonly [names: string, arity: 0 | 1 | 2])[] = [
  ['abs', 1],
  ['min', 2],
  ['max', 2],
  ['pow', 2],
  ['ceil', 1],
  ['floor', 1],
  ['round', 2],
  ['to_int to_integer to_long to_number', 1],
  ['to_float to_double', 1],
  ['to_str to_string', 1],
  ['to_bool to_boolean', 1],
  ['is_int is_integer is_long', 1],
  ['is_float is_double', 1],
  ['is_str is_string', 1],
  ['is_bool is_boolean', 1],
  ['is_null', 1],
  ['is_array', 1],
  ['to_json', 1],
  ['concat', 2],
  ['upper', 1],
  ['lower', 1],
  ['len length', 1],
  ['count', 1],
  ['rev revision', 1],
  ['expires', 1],
  ['current_time', 0],
]

/** The functions by name. */
export const functions: ReadonlyMap<string, ScriptFunction> = new Map(
  definitions.flatMap(([names, arity], id) => names.split(' ').map((name) => [name, { id, arity }] as const)),
)

export const functionNames: ReadonlySet<string> = new Set(functions.keys())
