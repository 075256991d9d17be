import type { Runs } from '../child/protocol.ts'

/** How often each job ran, over all workers and rounds of a store: a run with a fault in it has failed. */
export class Ledger {
  readonly capacity: number
  readonly #times: Uint8Array
  #wrong = 0

  /** Jobs are numbered from 0; one from `capacity` on must never run. */
  constructor(capacity: number) {
    this.capacity = capacity
    this.#times = new Uint8Array(capacity)
  }

  add({ times, wrong }: Runs): void {
    for (const [n, count] of times.entries()) {
      if (count > 0) this.#times[n] = (this.#times[n] ?? 0) + count
    }
    this.#wrong += wrong
  }

  get ran(): number {
    return this.#times.reduce((sum, count) => sum + (count > 0 ? 1 : 0), 0)
  }

  /** Throws unless every job below `jobs` ran just once, each with its own input, and no other did. */
  checkComplete(name: string, jobs: number): void {
    this.checkSound(name)
    const missing = jobs - this.#times.subarray(0, jobs).reduce((sum, count) => sum + (count > 0 ? 1 : 0), 0)
    const beyond = this.ran - (jobs - missing)
    if (missing > 0) throw new Error(`${name}: ${missing} of ${jobs} jobs never ran`)
    if (beyond > 0) throw new Error(`${name}: ${beyond} jobs ran that were not due`)
  }

  /** Throws if a job ran twice or with another's input. */
  checkSound(name: string): void {
    const doubled = this.#times.reduce((sum, count) => sum + (count > 1 ? 1 : 0), 0)
    if (doubled > 0) throw new Error(`${name}: ${doubled} jobs ran more than once`)
    if (this.#wrong > 0) throw new Error(`${name}: ${this.#wrong} jobs ran with a wrong input`)
  }
}

export function checkCounts(name: string, unfinished: number, expected: number): void {
  if (unfinished !== expected) {
    throw new Error(`${name}: its tables say ${unfinished} jobs are unfinished, where ${expected} should be`)
  }
}
