import { type ArgsDef, type CommandDef, defineCommand, type ParsedArgs } from 'citty'
import { checkNumber } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import type { Limit } from '../base/limits.ts'
import { usageError } from './cli-error.ts'
import { Output } from './output.ts'

/** Options that every command takes. */
export const commonArgs = {
  app: {
    type: 'string',
    valueHint: 'file',
    description: 'App file. Default: app.ts or app.js in this folder',
  },
  database: {
    type: 'string',
    valueHint: 'url',
    description: 'Address of the database, in place of an app file',
  },
  schema: { type: 'string', valueHint: 'name', description: 'Schema, with --database. Default: holdfast' },
  json: { type: 'boolean', description: 'Print one JSON document' },
  color: {
    type: 'boolean',
    default: true,
    negativeDescription: 'Print without colours',
    description: 'Print in colours',
  },
} as const satisfies ArgsDef

export type CommonArgs = {
  readonly app?: string | undefined
  readonly database?: string | undefined
  readonly schema?: string | undefined
}

export interface CommandInput<A extends ArgsDef> {
  readonly args: ParsedArgs<A & typeof commonArgs>
  /** What was given without a name, where the command takes a list of it. */
  readonly list: readonly string[]
  /** Every value of an option that may be given more than once, in order. */
  readonly every: (option: string) => readonly string[]
  readonly output: Output
}

export interface CommandSpec<A extends ArgsDef> {
  readonly name: string
  readonly description: string
  readonly args: A
  /** What the list is of, if the command takes one: at least one has to be given, unless optional. */
  readonly list?: { readonly of: string; readonly optional?: boolean }
  readonly run: (input: CommandInput<A>) => Promise<void>
}

/**
 * A command that refuses what it does not know: citty itself lets unknown options and further arguments pass,
 * and a mistyped `--quue` would quietly mean all queues.
 */
export function command<const A extends ArgsDef>(spec: CommandSpec<A>): CommandDef<ArgsDef> {
  const args = { ...spec.args, ...commonArgs } as A & typeof commonArgs
  const description = spec.list ? `${spec.description}. Takes: ${spec.list.of}` : spec.description
  return defineCommand({
    meta: { name: spec.name, description },
    args: args as ArgsDef,
    async run(context) {
      const parsed = context.args as unknown as CommandInput<A>['args']
      requireKnown(spec, args, context.rawArgs, context.args)
      const color = parsed['color'] !== false && process.stdout.isTTY === true && !process.env['NO_COLOR']
      const output = new Output({ json: parsed['json'] === true, color })
      const every = (option: string) => valuesOf(context.rawArgs, option)
      await spec.run({ args: parsed, list: spec.list ? parsed._ : [], every, output })
    },
  }) as CommandDef<ArgsDef>
}

function requireKnown<A extends ArgsDef>(
  spec: CommandSpec<A>,
  args: ArgsDef,
  rawArgs: readonly string[],
  parsed: ParsedArgs,
): void {
  const help = `see "holdfast ${spec.name} --help"`
  for (const name of Object.keys(parsed)) {
    if (name !== '_' && !Object.hasOwn(args, name) && !Object.hasOwn(args, kebab(name)))
      throw usageError(`there is no option --${name}; ${help}`)
  }
  for (const [index, raw] of rawArgs.entries()) {
    if (raw === '--') break
    const next = rawArgs[index + 1]
    const wantsValue = raw.startsWith('--') && args[raw.slice(2)]?.type === 'string'
    if (wantsValue && (next === undefined || next.startsWith('--')))
      throw usageError(`${raw} needs a value; ${help}`)
  }
  const positionals = Object.values(args).filter((arg) => arg.type === 'positional').length
  if (spec.list === undefined && parsed._.length > positionals)
    throw usageError(`"${parsed._[positionals]}" is one argument too many; ${help}`)
  if (spec.list && !spec.list.optional && parsed._.length === 0)
    throw usageError(`${spec.list.of} is missing; ${help}`)
}

/** citty keeps the last value of an option. */
function valuesOf(rawArgs: readonly string[], option: string): readonly string[] {
  const end = rawArgs.indexOf('--')
  const args = end === -1 ? rawArgs : rawArgs.slice(0, end)
  return args.flatMap((arg, index) => {
    if (arg.startsWith(`--${option}=`)) return [arg.slice(option.length + 3)]
    const value = args[index + 1]
    return arg === `--${option}` && value !== undefined ? [value] : []
  })
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/**
 * The number of an option, checked against its range.
 *
 * @throws {InvalidArgumentError} It is no plain decimal number, or out of range.
 */
export function numberOption<L extends Limit>(field: string, text: string | undefined, limit: L) {
  const number = text === undefined || /^-?\d+(\.\d+)?$/.test(text) ? text : Number.NaN
  return checkNumber(field, number === undefined ? undefined : Number(number), limit)
}

/**
 * The 64-bit number of an option, every digit of it; its range is checked by who takes it.
 *
 * @throws {InvalidArgumentError} It is no plain whole number.
 */
export function int8Option(field: string, text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined
  if (!/^-?\d{1,30}$/.test(text))
    throw new InvalidArgumentError({ field, problem: 'must be a whole number, such as 1000' })
  return BigInt(text)
}

/** The items of a list with commas; `\,` stands for a comma in a name. */
export function listOption(text: string | undefined): readonly string[] | undefined {
  return text?.split(/(?<!\\),/).map((item) => item.replaceAll('\\,', ',').trim())
}
