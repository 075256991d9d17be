import type { Paint } from './paint.ts'
import type { ScriptAnswer, ScriptValue } from './services.ts'

const LISTING = /\bby\s+(?:bucket|prefix)\b/i

/**
 * The answer of a script for people: `r3 set`, `r3 value`, `not found`.
 *
 * @param text The script: what it lists is shown with its keys, also where it is only one.
 */
export function answerLines(answer: ScriptAnswer, text: string, paint: Paint): readonly string[] {
  const { type, revision, values } = answer
  const at = (text: string) => (revision < 0n ? text : `${paint.revision(revision)} ${text}`)
  switch (type) {
    case 'set':
    case 'deleted':
    case 'extended':
      return [at(paint.done(type))]
    case 'notset':
      return [at(paint.refused('not set'))]
    case 'exists':
      return [at(paint.done('exists'))]
    case 'doesnotexist':
      return [paint.refused('not found')]
    case 'none':
      return [paint.done('done')]
    case 'get':
      return values.length === 0
        ? [paint.refused('nothing')]
        : values.map((value) => valueLine(value, values.length > 1 || LISTING.test(text), paint))
  }
}

function valueLine({ key, value, revision }: ScriptValue, withKey: boolean, paint: Paint): string {
  const parts = [
    ...(revision < 0n ? [] : [paint.revision(revision)]),
    // Otherwise it is of the key that was asked for.
    ...(key === undefined || !withKey ? [] : [paint.strong(paint.value(key))]),
    paint.value(value),
  ]
  return parts.join(' ')
}
