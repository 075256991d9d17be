/** Last code point of the planes that have letters with two cases. */
const LAST_LETTER = 0x1_f000

const tables = new Map<'upper' | 'lower', string>()

/**
 * The letters beyond ASCII that have one counterpart in the other case, then their counterparts in the same order. Those
 * that would become several (`ß`) or depend on the language (`ı`) stay as they are. The same whatever the server's locale is.
 */
export function caseTable(to: 'upper' | 'lower'): string {
  let table = tables.get(to)
  if (table === undefined) {
    const letters: string[] = []
    const counterparts: string[] = []
    for (let point = 0x80; point < LAST_LETTER; point += 1) {
      if (point >= 0xd800 && point <= 0xdfff) continue
      const letter = String.fromCodePoint(point)
      const other = to === 'upper' ? letter.toUpperCase() : letter.toLowerCase()
      const isOne = other.length === String.fromCodePoint(other.codePointAt(0) as number).length
      if (other === letter || !isOne || letter === 'ı' || letter === 'İ') continue
      letters.push(letter)
      counterparts.push(other)
    }
    table = letters.join('') + counterparts.join('')
    tables.set(to, table)
  }
  return table
}
