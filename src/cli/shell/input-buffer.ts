import { isComplete } from '../../scripts/is-complete.ts'
import { kindOf } from './session.ts'

/** Gathers lines until they are an input that can be run. */
export class InputBuffer {
  #text = ''

  /** What has been gathered and cannot be run yet; `''` at the beginning of an input. */
  get pending(): string {
    return this.#text
  }

  /** Adds a line. Gives the input that it completes, if it does. */
  add(line: string): string | undefined {
    const text = this.#text === '' ? line : `${this.#text}\n${line}`
    // A command is one line; a script goes on while something in it is open.
    const goesOn = kindOf(text) === 'script' && !isComplete(text)
    this.#text = goesOn ? text : ''
    return goesOn ? undefined : text
  }

  /** Forgets what has been gathered, and gives it. */
  take(): string {
    const text = this.#text
    this.#text = ''
    return text
  }
}
