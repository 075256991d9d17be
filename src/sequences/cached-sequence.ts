import { SequenceExhaustedError } from './errors.ts'
import type { ReservedRange } from './sequence-options.ts'

/** How a sequence is given from memory. */
export interface CachedSequenceOptions {
  /** Whose sequence it is. Default: nobody's. */
  readonly tenant?: string | undefined
  /**
   * Values drawn at a time: 1 to 1,000,000. More are fewer statements, and a larger gap when the process ends.
   * Default: 1,000.
   */
  readonly block?: number | undefined
}

export interface CachedSequenceParts {
  readonly block: bigint
  readonly reserve: (count: bigint) => Promise<ReservedRange>
  /** Refuses a call from inside a transaction. */
  readonly requireOutside: () => void
}

/** Gives values of a sequence from a block in memory. Made by `app.sequences.cached`. */
export class CachedSequence {
  readonly #parts: CachedSequenceParts
  #left: ReservedRange | undefined
  /** The request under way: whoever comes meanwhile waits for it. */
  #drawing: Promise<void> | undefined

  /** @internal */
  constructor(parts: CachedSequenceParts) {
    this.#parts = parts
  }

  /**
   * The next value of the block, drawing a block if there is none. Rises from call to call of this object. Calls at the
   * same time share a block, and its error if it cannot be had; the next call asks again.
   *
   * Near the maximum, blocks are as small as they have to be: no value is left out. A sequence that was deleted meanwhile
   * is noticed with the next block.
   *
   * @throws {OutsideTransactionError} Called inside a transaction of the app: a block outlives it. Draw before, or use
   *   `app.sequences.next` with `tx`.
   * @throws {SequenceNotFoundError} {@link SequenceExhaustedError} {@link UnavailableError}
   * @throws {OutcomeUnknownError} The answer was lost: a block may be drawn that nobody has. Repeating is safe.
   */
  async next(): Promise<bigint> {
    this.#parts.requireOutside()
    for (;;) {
      const value = this.#take()
      if (value !== undefined) return value
      // A block may be smaller than the calls that wait for it.
      this.#drawing ??= this.#draw().finally(() => {
        this.#drawing = undefined
      })
      await this.#drawing
    }
  }

  #take(): bigint | undefined {
    const left = this.#left
    if (left === undefined) return undefined
    const { first, last, increment, count } = left
    this.#left = first === last ? undefined : { first: first + increment, last, increment, count: count - 1n }
    return first
  }

  async #draw(): Promise<void> {
    for (let count = this.#parts.block; ; ) {
      try {
        this.#left = await this.#parts.reserve(count)
        return
      } catch (error) {
        // What is left may become less between two requests, never more.
        if (!(error instanceof SequenceExhaustedError) || error.available === 0n) throw error
        count = error.available
      }
    }
  }
}
