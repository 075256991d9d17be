import { isComplete } from '../../scripts/is-complete.ts'
import { parseScript } from '../../scripts/parser.ts'
import { kindOf } from './session.ts'

/**
 * Gathers lines until they are an input that can be run. A command is one line. A script goes on
 *
 * - while something in it is open: a block, a bracket, an operator;
 * - after a `\\` at the end of a line;
 * - after a `let`, whose variable would be of no use at the end; an empty line ends it all the same.
 */
export class InputBuffer {
  #text = ''
  /** The line before asked for this one. */
  #isAsked = false

  /** What has been gathered and cannot be run yet; `''` at the beginning of an input. */
  get pending(): string {
    return this.#text
  }

  /** Adds a line. Gives the input that it completes, if it does. */
  add(line: string): string | undefined {
    const before = this.#text
    const asks = /\\\s*$/.test(line)
    const text = `${before}${before === '' ? '' : '\n'}${asks ? line.replace(/\\\s*$/, '') : line}`
    const isEnd = line.trim() === '' && !this.#isAsked
    const goesOn = asks || (kindOf(text) === 'script' && (!isComplete(text) || (!isEnd && endsWithLet(text))))
    this.#isAsked = asks
    this.#text = goesOn ? text : ''
    return goesOn ? undefined : text
  }

  /** Forgets what has been gathered, and gives it. */
  take(): string {
    const text = this.#text
    this.#text = ''
    this.#isAsked = false
    return text
  }
}

function endsWithLet(text: string): boolean {
  try {
    return parseScript(text).statements.at(-1)?.kind === 'let'
  } catch {
    // What is wrong is told when it runs.
    return false
  }
}
