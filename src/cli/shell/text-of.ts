/** The bytes of a value as text or, where they are no text in UTF-8, as PostgreSQL writes bytes: `\xdeadbeef`. */
export function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return `\\x${Buffer.from(bytes).toString('hex')}`
  }
}
