import { ScriptAbortedError, ScriptError, ScriptThrownError } from '../scripts/errors.ts'
import { excerptOf } from '../scripts/place.ts'

/** The line where a script failed, with a mark; `undefined` if the error has none, or shows it itself. */
export function scriptExcerpt(error: unknown, script: string): string | undefined {
  const isOfScript =
    error instanceof ScriptError || error instanceof ScriptThrownError || error instanceof ScriptAbortedError
  if (!isOfScript) return undefined
  const before = script.split('\n').slice(0, error.line - 1)
  const start = before.reduce((length, each) => length + each.length + 1, 0)
  const indent = /^[ \t]*/.exec(script.slice(start))?.[0].length ?? 0
  return excerptOf(script, start + indent)
}
