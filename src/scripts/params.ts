import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { floatText } from './number-text.ts'

/** What a parameter may be. It reaches the script as text, which a number or boolean is turned into. */
export type ScriptParam = string | number | bigint | boolean

/** Parameters by name, with or without `@`. Those that the script does not name are ignored. */
export type ScriptParams = Readonly<Record<string, ScriptParam>>

const NAME = /^@?[A-Za-z0-9_]+$/
const UNSTORABLE = /[\0\p{Cs}]/u

/**
 * The parameters as text, by name without `@`.
 *
 * @throws {InvalidArgumentError} A name or value that no parameter can have.
 */
export function checkParams(params: unknown): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  if (params === undefined || params === null) return texts
  if (typeof params !== 'object' || Array.isArray(params))
    throw new InvalidArgumentError({ field: 'params', problem: 'must be an object' })
  for (const [given, value] of Object.entries(params)) {
    const field = `params.${given.slice(0, 100)}`
    if (!NAME.test(given))
      throw new InvalidArgumentError({ field, problem: 'must be named by letters, digits and underscores' })
    const name = given.replace('@', '')
    if (texts.has(name)) throw new InvalidArgumentError({ field, problem: 'is given twice' })
    texts.set(name, textOf(field, value))
  }
  return texts
}

function textOf(field: string, value: unknown): string {
  switch (typeof value) {
    case 'string': {
      const { max } = limits.scriptTextBytes
      if (value.length > max || Buffer.byteLength(value) > max)
        throw new InvalidArgumentError({ field, problem: `may have ${max} bytes of UTF-8` })
      if (UNSTORABLE.test(value)) {
        const problem = 'must be text without NUL characters and halves of surrogate pairs'
        throw new InvalidArgumentError({ field, problem })
      }
      return value
    }
    case 'number':
      return Number.isSafeInteger(value) && !Object.is(value, -0) ? String(value) : floatText(value)
    case 'bigint':
    case 'boolean':
      return String(value)
    default:
      throw new InvalidArgumentError({ field, problem: 'must be text, a number, a bigint or a boolean' })
  }
}
