import { toRecordableJson, truncateUtf8 } from './json.ts'
import { limits } from './limits.ts'
import { redactText } from './redact.ts'

/** What is kept of something thrown. */
export interface RecordedError {
  /** The error's name, or the type of what was thrown in place of an error. */
  readonly name: string
  /** Never empty. */
  readonly message: string
  readonly code?: string
  readonly stack?: string
  /** What caused it, nearest first; the first {@link MAX_CAUSES} only. */
  readonly causes?: readonly Omit<RecordedError, 'stack' | 'causes'>[]
}

const MAX_CAUSES = 5
const NAME_BYTES = 255
/** Text beyond this many times what is kept is not even looked at: what is cut off must be redacted first. */
const REDACT_AHEAD = 4

/**
 * Turns whatever was thrown into JSON text of at most `maxBytes`, a {@link RecordedError}. Never throws, whatever
 * getters, proxies, cycles or sizes it meets. Secrets in the texts are masked as by `redactText`.
 */
export function errorToJson(thrown: unknown, maxBytes: number = limits.errorBytes.default): string {
  for (let textBytes = Math.floor(maxBytes / 2); ; textBytes = Math.floor(textBytes / 2)) {
    const { json } = toRecordableJson(recordError(thrown, textBytes), { maxBytes: Number.MAX_SAFE_INTEGER })
    // Escapes can make JSON six times as long as its text: then less text is kept.
    if (Buffer.byteLength(json) <= maxBytes || textBytes <= 1) return json
  }
}

/** Reads what is kept of something thrown; each text is at most `textBytes` long. Never throws. */
export function recordError(
  thrown: unknown,
  textBytes: number = limits.errorBytes.default / 4,
): RecordedError {
  const stack = text(read(thrown, 'stack'), textBytes)
  const causes = causesOf(thrown, Math.floor(textBytes / 8))
  return {
    ...describe(thrown, textBytes),
    ...(stack === undefined ? {} : { stack }),
    ...(causes.length === 0 ? {} : { causes }),
  }
}

/** `instanceof` for something foreign, which may be a proxy that throws when it is asked. */
export function isInstance<T extends object>(
  thrown: unknown,
  type: abstract new (...args: never[]) => T,
): thrown is T {
  try {
    return thrown instanceof type
  } catch {
    return false
  }
}

function describe(thrown: unknown, textBytes: number): Omit<RecordedError, 'stack' | 'causes'> {
  const code = read(thrown, 'code')
  const hasCode = typeof code === 'string' || typeof code === 'number'
  const nameBytes = Math.min(NAME_BYTES, textBytes)
  const name = text(read(thrown, 'name'), nameBytes) ?? typeNameOf(thrown)
  return {
    name,
    message: text(read(thrown, 'message'), textBytes) ?? fallbackMessage(thrown, textBytes) ?? name,
    ...(hasCode ? { code: text(String(code), nameBytes) ?? '' } : {}),
  }
}

function causesOf(thrown: unknown, textBytes: number): Omit<RecordedError, 'stack' | 'causes'>[] {
  const causes: Omit<RecordedError, 'stack' | 'causes'>[] = []
  const seen = new Set<unknown>([thrown])
  let cause = read(thrown, 'cause')
  while (cause !== undefined && cause !== null && !seen.has(cause) && causes.length < MAX_CAUSES) {
    seen.add(cause)
    causes.push(describe(cause, textBytes))
    cause = read(cause, 'cause')
  }
  return causes
}

/** What to say of something without a message: its text, or its members. */
function fallbackMessage(thrown: unknown, textBytes: number): string | undefined {
  if (typeof thrown === 'string') return text(thrown, textBytes) ?? 'an empty text was thrown'
  if (typeof thrown === 'symbol' || typeof thrown === 'function') return `a ${typeof thrown} was thrown`
  if (thrown === undefined || typeof thrown === 'bigint') return String(thrown)
  const { json, altered } = toRecordableJson(thrown, { maxBytes: 64 * 1024, field: 'thrown' })
  if (json === '{}' || json === '"[Error]"') return undefined
  if (json === 'null' && altered) return 'something too large or unreadable was thrown'
  return text(json, textBytes)
}

function typeNameOf(thrown: unknown): string {
  if (thrown === null) return 'null'
  return typeof thrown === 'object' ? 'Object' : typeof thrown
}

/** A member of something foreign: a getter or proxy that throws has none. */
function read(value: unknown, name: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  if (typeof value === 'function' && name === 'name') return undefined
  try {
    return Reflect.get(value, name)
  } catch {
    // The thrown thing is foreign; what it refuses to tell is simply not recorded.
    return undefined
  }
}

function text(value: unknown, maxBytes: number): string | undefined {
  if (typeof value !== 'string' || value.trim() === '') return undefined
  return truncateUtf8(redactText(value.slice(0, Math.max(1024, maxBytes * REDACT_AHEAD))), maxBytes)
}
