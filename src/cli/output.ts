import { styleText } from 'node:util'
import { oneLine } from '../base/one-line.ts'

/** JSON text that is printed as it is: an input keeps every digit. */
export class RawJson {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export interface Column<T> {
  readonly title: string
  readonly value: (row: T) => string | number | bigint | null | undefined
  /** Numbers stand at the right. */
  readonly right?: boolean
}

/** Longest cell of a table in characters; `--json` has all of it. */
const CELL = 60

/** Where a command writes: one JSON document, or text for people. */
export class Output {
  readonly #json: boolean
  readonly color: boolean

  constructor(options: { readonly json: boolean; readonly color: boolean }) {
    this.#json = options.json
    this.color = options.color
  }

  /** Prints `value` as JSON, or else what `human` gives, line by line. */
  print(value: unknown, human: () => readonly string[]): void {
    const text = this.#json ? toJson(value) : human().join('\n')
    process.stdout.write(`${text}\n`)
  }

  heading(text: string): string {
    return this.color ? styleText('bold', text) : text
  }

  /** An aligned table; `otherwise` if there are no rows. */
  table<T>(rows: readonly T[], columns: readonly Column<T>[], otherwise: string): readonly string[] {
    if (rows.length === 0) return [otherwise]
    const cells = rows.map((row) => columns.map((column) => cell(column.value(row))))
    const widths = columns.map((column, index) =>
      Math.max(column.title.length, ...cells.map((line) => line[index]?.length ?? 0)),
    )
    const align = (texts: readonly string[]) =>
      texts
        .map((text, index) =>
          columns[index]?.right ? text.padStart(widths[index] ?? 0) : text.padEnd(widths[index] ?? 0),
        )
        .join('  ')
        .trimEnd()
    return [this.heading(align(columns.map((column) => column.title))), ...cells.map(align)]
  }
}

function cell(value: string | number | bigint | null | undefined): string {
  const text = value === null || value === undefined ? '-' : oneLine(String(value))
  if (text.length <= CELL) return text
  // Not inside a surrogate pair.
  return `${text.slice(0, CELL - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** JSON in two-space indentation; 64-bit numbers as text, instants in ISO 8601, {@link RawJson} as it is. */
export function toJson(value: unknown, indent = ''): string {
  if (value instanceof RawJson) return value.text
  if (typeof value === 'bigint') return `"${value}"`
  if (typeof value !== 'object' || value === null || value instanceof Date)
    return JSON.stringify(value) ?? 'null'
  const inner = `${indent}  `
  const isList = Array.isArray(value)
  const items = isList
    ? value.map((item) => toJson(item, inner))
    : Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([name, member]) => `${JSON.stringify(name)}: ${toJson(member, inner)}`)
  const [open, close] = isList ? ['[', ']'] : ['{', '}']
  if (items.length === 0) return `${open}${close}`
  return `${open}\n${items.map((item) => inner + item).join(',\n')}\n${indent}${close}`
}
