import { oneLine } from '../base/one-line.ts'
import type { ScriptResult, ScriptValue } from '../scripts/result.ts'

/** The answer of a script as one JSON document. */
export function scriptDocument({ type, revision, values, elapsedMs }: ScriptResult): unknown {
  return {
    type,
    revision,
    values: values.map(({ value, ...others }) => ({
      ...others,
      value: textOf(value),
      // Bytes that are no text.
      base64: textOf(value) === null ? Buffer.from(value).toString('base64') : undefined,
    })),
    elapsedMs: Math.round(elapsedMs * 1000) / 1000,
  }
}

/**
 * The answer of a script as text: a single value alone, for use in a shell; several with their keys; of a write what
 * it came to.
 */
export function scriptLines(
  { type, revision, values }: ScriptResult,
  isTerminal: boolean,
): readonly string[] {
  // In a file or pipe a value is what it is; on a terminal it may not move the cursor.
  const shown = (text: string) => (isTerminal ? oneLine(text) : text)
  if (type === 'get')
    return values.map((each) => (values.length === 1 ? shown(valueText(each)) : shown(itemText(each))))
  const sentences = {
    none: 'done',
    set: 'set',
    notset: 'not set',
    exists: 'exists',
    doesnotexist: 'does not exist',
    deleted: 'deleted',
    extended: 'extended',
  } as const
  return [revision < 0n ? sentences[type] : `${sentences[type]}, revision ${revision}`]
}

function itemText(item: ScriptValue): string {
  return item.key === null ? valueText(item) : `${item.key}\t${valueText(item)}`
}

function valueText({ value }: ScriptValue): string {
  return textOf(value) ?? `\\x${Buffer.from(value).toString('hex')}`
}

function textOf(value: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value)
  } catch {
    return null
  }
}
