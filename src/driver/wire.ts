import type { WireValue } from './driver.ts'

/** Makes text of a parameter. */
export type Encoder = (value: unknown) => WireValue
/** Makes a value of a column, null being null. */
export type Decoder = (value: unknown) => unknown

/** How parameters of a PostgreSQL type travel, a `?` behind it or not. */
export function encoderOf(type: string): Encoder {
  if (type.startsWith('text[]')) return orNull((value) => encodeTexts(value as readonly (string | null)[]))
  if (type.includes('[]')) return orNull((value) => `{${(value as readonly unknown[]).join(',')}}`)
  if (type.startsWith('bytes')) return orNull((value) => toHex(value as Uint8Array))
  if (type.startsWith('instant')) return orNull((value) => String((value as Date).getTime()))
  return orNull((value) => (typeof value === 'string' ? value : String(value)))
}

/** How columns of a PostgreSQL type are read. */
export function decoderOf(type: string): Decoder {
  return orNull(decoders[type.replace('?', '')] ?? ((value) => value))
}

const decoders: Readonly<Record<string, (value: unknown) => unknown>> = {
  int8: (value) => BigInt(value as string | number | bigint),
  int4: Number,
  float8: Number,
  instant: (value) => new Date(Number(value)),
  bool: (value) => value === true || value === 't',
  'int8[]': (value) => ((value as string).length === 2 ? [] : (value as string).slice(1, -1).split(',')),
  bytes: (value) => Buffer.from(value as string, 'hex'),
  json: (value) => (typeof value === 'string' ? JSON.parse(value) : value),
}

function orNull<T>(convert: (value: unknown) => T): (value: unknown) => T | null {
  return (value) => (value === null || value === undefined ? null : convert(value))
}

function encodeTexts(items: readonly (string | null)[]): string {
  return `{${items.map((item) => (item === null ? 'null' : `"${item.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`
}

/** As PostgreSQL reads `bytea`, whatever `bytea_output` says. */
function toHex(bytes: Uint8Array): string {
  return `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`
}
