/** Characters of the line that are shown on each side of the place. */
const SHOWN = 60

/** Line and column of an offset, both from 1. A column is a character, whatever its width; a line ends with LF or CR LF. */
export function placeOf(source: string, offset: number): { readonly line: number; readonly column: number } {
  let line = 1
  let start = 0
  for (let at = source.indexOf('\n'); at !== -1 && at < offset; at = source.indexOf('\n', at + 1)) {
    line += 1
    start = at + 1
  }
  return { line, column: countCharacters(source, start, offset) + 1 }
}

/** The line around an offset, cut where it is long, and a line with `^` under the character there. */
export function excerptOf(source: string, offset: number): string {
  const lineStart = offset === 0 ? 0 : source.lastIndexOf('\n', offset - 1) + 1
  const newline = /\r?\n/g
  newline.lastIndex = offset
  const lineEnd = newline.exec(source)?.index ?? source.length
  const start = whole(source, Math.max(lineStart, offset - SHOWN))
  const end = whole(source, Math.min(lineEnd, offset + SHOWN))
  const before = printable(source.slice(start, offset))
  const shown = `${before}${printable(source.slice(offset, end))}`.trimEnd()
  // Tabs stay tabs, so that the mark stands under its place whatever a tab's width is.
  const padding = Array.from(before, (character) => (character === '\t' ? '\t' : ' ')).join('')
  const cutStart = start > lineStart ? '...' : ''
  const cutEnd = end < lineEnd ? '...' : ''
  return `  ${cutStart}${shown}${cutEnd}\n  ${' '.repeat(cutStart.length)}${padding}^`
}

/** Not between the halves of a surrogate pair. */
function whole(source: string, offset: number): number {
  return /[\uDC00-\uDFFF]/.test(source[offset] ?? '') && /[\uD800-\uDBFF]/.test(source[offset - 1] ?? '')
    ? offset - 1
    : offset
}

/** Control characters would move the cursor of a terminal. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, (character) =>
    character === '\t' ? character : '\uFFFD',
  )
}

function countCharacters(source: string, start: number, end: number): number {
  let count = 0
  for (let at = start; at < end; at += 1) {
    const code = source.charCodeAt(at)
    const isSecondHalf =
      code >= 0xdc00 && code <= 0xdfff && at > start && (source.charCodeAt(at - 1) & 0xfc00) === 0xd800
    if (!isSecondHalf) count += 1
  }
  return count
}
