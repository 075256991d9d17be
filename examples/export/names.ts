/** A name that would lead out of its place, or that two could share. */
export class InvalidNameError extends Error {
  override readonly name = 'InvalidNameError'

  constructor(what: string, problem: string) {
    super(`${what} ${problem}`)
  }
}

/** So that a file's name, with what is added to it, stays within the 255 bytes of a file system. */
const MAX_BYTES = 180

/**
 * The name of a file or folder that stands for `text` alone: one path segment, whatever `text` holds. Bytes other than
 * small letters, digits, `_`, `-` and a dot that is not the first are written as `%2F`, so `a/b` is not a folder in `a`,
 * and `A` is not `a` where case does not count.
 */
export function toFileName(text: string): string {
  const name = Array.from(Buffer.from(text), (byte, index) => {
    const letter = String.fromCharCode(byte)
    const isPlain = /[a-z0-9_-]/.test(letter) || (letter === '.' && index > 0)
    return isPlain ? letter : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }).join('')
  if (name.length > MAX_BYTES) throw new InvalidNameError('the name', `takes more than ${MAX_BYTES} bytes`)
  return name
}

/** What {@link toFileName} was given. */
export function fromFileName(name: string): string {
  return decodeURIComponent(name)
}

/**
 * A key names one file of a tenant, such as `exports/2026-11.csv`.
 *
 * @throws {InvalidNameError} It is empty or absolute, has an empty segment, or one of dots only. Nothing was touched.
 */
export function checkKey(key: string): string {
  checkText('a key', key)
  if (key.startsWith('/') || /^[a-z]:/i.test(key)) throw new InvalidNameError('a key', 'is absolute')
  if (key.includes('\\')) throw new InvalidNameError('a key', 'has a backslash')
  for (const segment of key.split('/')) {
    if (segment === '') throw new InvalidNameError('a key', 'has an empty segment')
    if (/^\.+$/.test(segment)) throw new InvalidNameError('a key', `has the segment "${segment}"`)
  }
  return key
}

/** @throws {InvalidNameError} It is empty, or no text that can be told from another. */
export function checkText(what: string, text: string): string {
  if (text === '') throw new InvalidNameError(what, 'is empty')
  // Half a character would become the same replacement as any other half.
  if (/\p{Surrogate}/u.test(text)) throw new InvalidNameError(what, 'has half a character')
  if (text.includes('\0')) throw new InvalidNameError(what, 'has a NUL')
  return text
}
