import { oneLine } from '../../base/one-line.ts'
import { errorText } from '../error-text.ts'
import { scriptExcerpt } from '../script-excerpt.ts'
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
  // A syntax error has its excerpt in its message; one at run time knows its line only.
  const excerpt = scriptExcerpt(error, script)
  const text = mask(excerpt === undefined ? errorText(error) : `${errorText(error)}\n${excerpt}`)
  // Each line for itself: the mark has to stay below its place.
  const [first = '', ...rest] = text.split('\n').map((line) => oneLine(line))
  return [paint.error(first), ...rest]
}
