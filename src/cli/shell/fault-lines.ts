import { oneLine } from '../../base/one-line.ts'
import { ScriptAbortedError, ScriptError, ScriptThrownError } from '../../scripts/errors.ts'
import { excerptOf } from '../../scripts/place.ts'
import { errorText } from '../error-text.ts'
import type { Paint } from './paint.ts'

/** Reason of the signal when Ctrl-C was pressed. */
export class CancelledError extends Error {
  override readonly name = 'CancelledError'

  constructor() {
    super('given up; what was sent to the database may still take effect')
  }
}

/**
 * What the shell prints of an error: its sentence and, for one of a script, the line with a mark under the place.
 *
 * @param script The script that ran last.
 */
export function faultLines(
  error: unknown,
  script: string,
  paint: Paint,
  mask: (text: string) => string,
): readonly string[] {
  if (error instanceof CancelledError) return [paint.refused(error.message)]
  const text = mask(`${errorText(error)}${excerptFor(error, script)}`)
  // Each line for itself: the mark has to stay below its place.
  const [first = '', ...rest] = text.split('\n').map((line) => oneLine(line))
  return [paint.error(first), ...rest]
}

/** A syntax error has its excerpt in its message; one at run time knows its line only. */
function excerptFor(error: unknown, script: string): string {
  const isOfScript =
    error instanceof ScriptError || error instanceof ScriptThrownError || error instanceof ScriptAbortedError
  const line = isOfScript ? (error as { readonly line?: number }).line : undefined
  if (line === undefined) return ''
  const before = script.split('\n').slice(0, line - 1)
  const start = before.reduce((length, each) => length + each.length + 1, 0)
  const indent = /^[ \t]*/.exec(script.slice(start))?.[0].length ?? 0
  return start > script.length ? '' : `\n${excerptOf(script, start + indent)}`
}
