/** Quotes a name for use as an identifier: case, blanks, quotes and unicode are taken literally. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
