import { checkOneOf } from '../base/check.ts'
import { recordError } from '../base/error-text.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { toRecordableJson } from '../base/json.ts'
import type { LogFields, Logger } from '../base/logger.ts'
import { oneLine } from '../base/one-line.ts'
import { redactText } from '../base/redact.ts'

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const
const formats = ['pretty', 'json', 'auto'] as const

/** From which level on lines are written. */
export type LogLevel = (typeof levels)[number]

/** Where lines go: a stream of Node, or anything that takes text. */
export interface LogStream {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
}

/** What {@link createLogger} takes. */
export interface LoggerOptions {
  /** The least level that is written: `debug`, `info`, `warn`, `error` or `silent`. Default: `info`. */
  readonly level?: LogLevel
  /** `pretty` for people, `json` with one object a line for collectors, `auto`: pretty on a terminal. Default: `auto`. */
  readonly format?: 'pretty' | 'json' | 'auto'
  /** Where lines go. Default: standard output. */
  readonly stream?: LogStream
  /** Whether pretty lines are coloured. Default: on a terminal, unless `NO_COLOR` is set. */
  readonly color?: boolean
}

const MAX_FIELD_BYTES = 16 * 1024
const MAX_LINE_BYTES = 64 * 1024
const colors = { debug: '90', info: '36', warn: '33', error: '31' } as const

/**
 * Creates a logger that writes lines. Its methods never throw, whatever they are given; secrets in texts are
 * masked, and control characters escaped, so that a line stays one line.
 *
 * @throws {InvalidArgumentError} An option is none of those listed.
 *
 * @example
 * export default defineApp({ name: 'shop', database, jobs, logger: createLogger({ level: 'warn' }) })
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  const least = levels.indexOf(checkOneOf('level', options.level ?? 'info', levels))
  const stream: LogStream = options.stream ?? process.stdout
  if (typeof stream.write !== 'function')
    throw new InvalidArgumentError({ field: 'stream', problem: 'must have a method "write"' })
  const wanted = checkOneOf('format', options.format ?? 'auto', formats)
  const isPretty = wanted === 'pretty' || (wanted === 'auto' && stream.isTTY === true)
  const isColored = options.color ?? (stream.isTTY === true && !process.env['NO_COLOR'])
  const method = (level: keyof Logger) => (message: string, given?: LogFields) => {
    const fields = given ?? {}
    if (levels.indexOf(level) < least) return
    try {
      const line = isPretty ? prettyLine(level, message, fields, isColored) : jsonLine(level, message, fields)
      stream.write(`${line}\n`)
    } catch {
      // A closed stream, or fields that cannot be read: the one who logs must not fail for it.
    }
  }
  return { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') }
}

function jsonLine(level: keyof Logger, message: string, fields: LogFields): string {
  const head = { time: new Date().toISOString(), level, message: redactText(String(message)) }
  // Own facts first and last: a field of the same name cannot pass for them.
  const line = { ...head, ...readable(fields), ...head }
  const { json, altered } = toRecordableJson(line, { maxBytes: MAX_LINE_BYTES })
  return altered && json === 'null' ? JSON.stringify({ ...head, note: 'fields left out: too large' }) : json
}

function prettyLine(level: keyof Logger, message: string, fields: LogFields, isColored: boolean): string {
  const paint = (code: string, text: string) => (isColored ? `\u001b[${code}m${text}\u001b[0m` : text)
  const time = new Date().toISOString().slice(11, 23)
  const names = Object.keys(fields).map((name) => [name, read(fields, name)] as const)
  const others = Object.fromEntries(names.filter(([, value]) => !(value instanceof Error)))
  const facts = Object.entries(readable(others)).map(
    ([name, value]) => `${oneLine(name)}=${fieldText(value)}`,
  )
  const tail = facts.length === 0 ? '' : ` ${paint('90', facts.join(' '))}`
  const head = `${paint('90', time)} ${paint(colors[level], level.padEnd(5))} ${oneLine(redactText(String(message)))}${tail}`
  return [head, ...names.flatMap(([, value]) => errorLines(value))].join('\n')
}

/** The stack of an error, indented, each line for itself without controls. */
function errorLines(value: unknown): readonly string[] {
  if (!(value instanceof Error)) return []
  const { stack, message } = recordError(value)
  return (stack ?? message).split('\n').map((line) => `    ${oneLine(line.trim())}`)
}

function fieldText(value: unknown): string {
  if (typeof value === 'string' && /^[\w.:/@+-]+$/.test(value)) return value
  return oneLine(toRecordableJson(value, { maxBytes: MAX_FIELD_BYTES }).json)
}

/** Fields as plain data: errors as name, message and stack, texts without secrets. */
function readable(fields: LogFields): Record<string, unknown> {
  const plain: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const name of Object.keys(fields)) {
    const value = read(fields, name)
    if (value === undefined) continue
    plain[name] =
      value instanceof Error ? recordError(value) : typeof value === 'string' ? redactText(value) : value
  }
  return plain
}

function read(fields: LogFields, name: string): unknown {
  try {
    return fields[name]
  } catch {
    // A getter that throws costs its own field, not the line.
    return '[unreadable]'
  }
}
