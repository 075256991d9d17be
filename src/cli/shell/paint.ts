import { oneLine } from '../../base/one-line.ts'

/** How much of a value a terminal shows. */
const SHOWN = 4000

/**
 * The sequences that turn a style on and off. By hand: `styleText` of newer releases of Node decides by itself, by standard
 * output, whether to do anything.
 */
const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const

/** Colours for what the shell writes; without colours, the text alone. Everything from outside is made safe for a terminal. */
export class Paint {
  readonly #color: boolean
  readonly #forPeople: boolean

  /** `forPeople`: values that are too long are cut off, and empty ones are told to be so. */
  constructor(options: { readonly color: boolean; readonly forPeople: boolean }) {
    this.#color = options.color
    this.#forPeople = options.forPeople
  }

  /** `r3`: the revision of a key. */
  revision(revision: bigint): string {
    return this.#style('cyan', `r${revision}`)
  }

  /** `f3`: a fencing token. */
  token(token: bigint): string {
    return this.#style('magenta', `f${token}`)
  }

  /** What was done. */
  done(text: string): string {
    return this.#style('green', text)
  }

  /** What was refused, or is not there. */
  refused(text: string): string {
    return this.#style('yellow', text)
  }

  error(text: string): string {
    return this.#style('red', text)
  }

  faint(text: string): string {
    return this.#style('dim', text)
  }

  strong(text: string): string {
    return this.#style('bold', text)
  }

  /** A text of somebody else's, whole or as much as fits for people. */
  value(text: string): string {
    if (this.#forPeople && text === '') return this.faint('(empty)')
    const shown = this.#forPeople ? text.slice(0, SHOWN).replace(/[\ud800-\udbff]$/, '') : text
    const left = text.length - shown.length
    return oneLine(shown) + (left > 0 ? this.faint(` … ${left} more characters`) : '')
  }

  #style(style: keyof typeof STYLES, text: string): string {
    const [on, off] = STYLES[style]
    return this.#color ? `\u001b[${on}m${text}\u001b[${off}m` : text
  }
}

/** A time that something took: `0.8 ms`, `12 ms`, `1.3 s`. */
export function took(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  return `${(ms / 1000).toFixed(1)} s`
}
