/**
 * CSV as RFC 4180 has it: fields apart by commas, records by CRLF, and a field that
 * holds a comma, a quote or a line break stands in quotes, its own quotes doubled.
 */
export type CsvRecord = readonly string[]

/** Writes records to CSV text; `parseCsv` gives back exactly the same fields. */
export function formatCsv(records: readonly CsvRecord[]): string {
  return records.map((record) => `${record.map(formatField).join(',')}\r\n`).join('')
}

function formatField(field: string): string {
  // Space at an edge is quoted too: some spreadsheets trim what stands bare.
  return /[",\r\n]|^\s|\s$/u.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}

/** Says on which line, counted from 1, the text stops being CSV. */
export class CsvError extends Error {
  override readonly name = 'CsvError'
  readonly line: number

  constructor(line: number, fault: string) {
    super(`line ${line}: ${fault}`)
    this.line = line
  }
}

/**
 * Reads CSV text into records, line breaks inside quotes kept as they are.
 *
 * Records may end in CRLF or LF, the last one in nothing. A byte order mark at the start is dropped.
 *
 * @throws {CsvError} A quote that is never closed, or one in the middle of a bare field.
 */
export function parseCsv(text: string): CsvRecord[] {
  const records: string[][] = []
  let record: string[] = []
  let at = text.startsWith('\uFEFF') ? 1 : 0

  while (at < text.length) {
    const { field, end } = text[at] === '"' ? readQuoted(text, at) : readBare(text, at)
    record.push(field)
    at = end

    if (text[at] === ',') {
      at += 1
      // A comma at the very end of the text announces one more field, which is empty.
      if (at < text.length) continue
      record.push('')
    }
    at += text.startsWith('\r\n', at) ? 2 : 1
    records.push(record)
    record = []
  }
  return records
}

interface Field {
  readonly field: string
  /** Where the comma, the line break or the end of the text stands that ended the field. */
  readonly end: number
}

function readBare(text: string, start: number): Field {
  const end = indexOfFirst(text, /[,\n"]/gu, start)
  if (text[end] === '"') throw new CsvError(lineOf(text, end), 'a quote inside a field that is not quoted')
  const lineBreak = text[end] === '\n' && text[end - 1] === '\r' && end > start ? end - 1 : end
  return { field: text.slice(start, lineBreak), end: lineBreak }
}

function readQuoted(text: string, start: number): Field {
  let field = ''
  let from = start + 1
  for (;;) {
    const quote = text.indexOf('"', from)
    if (quote === -1) throw new CsvError(lineOf(text, start), 'a quoted field that is never closed')
    field += text.slice(from, quote)
    if (text[quote + 1] !== '"') {
      const end = quote + 1
      const closed = end === text.length || /^(?:,|\r?\n)/u.test(text.slice(end, end + 2))
      if (!closed) throw new CsvError(lineOf(text, end), 'text after the quote that closes a field')
      return { field, end }
    }
    field += '"'
    from = quote + 2
  }
}

function indexOfFirst(text: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from
  return pattern.exec(text)?.index ?? text.length
}

function lineOf(text: string, at: number): number {
  return text.slice(0, at).split('\n').length
}
