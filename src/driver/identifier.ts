/** Quotes a name for use as an identifier: case, blanks, quotes and unicode are taken literally. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Quotes a text for use as a literal, whatever `standard_conforming_strings` says. */
export function quoteLiteral(text: string): string {
  return `${text.includes('\\') ? 'E' : ''}'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}
