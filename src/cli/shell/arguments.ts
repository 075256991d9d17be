import { usageError } from '../cli-error.ts'

/** @throws {CliError} There are fewer or more arguments than a command takes. */
export function requireCount(args: readonly string[], min: number, max: number): void {
  if (args.length < min) throw usageError('something is missing; "help COMMAND" shows how it is used')
  if (args.length > max)
    throw usageError(`"${args[max]}" is one word too many; quote what has blanks: "two words"`)
}

/** The one name that a command takes. */
export function oneName(args: readonly string[], what: string): string {
  if (args.length === 0) throw usageError(`${what} is missing; "help COMMAND" shows how it is used`)
  requireCount(args, 1, 1)
  return args[0] ?? ''
}

/**
 * Parts words into those that are `name=value` with a name of `known`, and the others.
 *
 * @throws {CliError} A name comes twice.
 */
export function namedValues(
  args: readonly string[],
  known: readonly string[],
): { readonly plain: readonly string[]; readonly named: ReadonlyMap<string, string> } {
  const plain: string[] = []
  const named = new Map<string, string>()
  for (const arg of args) {
    const name = known.find((each) => arg.startsWith(`${each}=`))
    if (name === undefined) plain.push(arg)
    else if (named.has(name)) throw usageError(`${name}= is given twice`)
    else named.set(name, arg.slice(name.length + 1))
  }
  return { plain, named }
}
