import type { StandardSchemaV1 } from '@standard-schema/spec'

/** Accepts every value as it is. */
export function anything<T = unknown>(): StandardSchemaV1<T> {
  return { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as T }) } }
}

/** Settles when the signal aborts, with its reason. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    signal.addEventListener('abort', () => resolve(signal.reason))
  })
}

/** A door that handlers wait at until the test opens it. */
export class Gate {
  readonly #opened: Promise<void>
  #open: () => void = () => {}
  waiting = 0

  constructor() {
    this.#opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  async wait(): Promise<void> {
    this.waiting += 1
    await this.#opened
    this.waiting -= 1
  }

  open(): void {
    this.#open()
  }
}
