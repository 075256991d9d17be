import { AsyncResource } from 'node:async_hooks'

export interface CoalescerOptions<Item> {
  /** Most items in one call. */
  readonly maxItems: number
  readonly sizeOf: (item: Item) => number
  /** Most size in one call, unless a single item exceeds it. */
  readonly maxSize: number
}

interface Waiting<Item, Answer> {
  readonly item: Item
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/**
 * Lets concurrent callers share a call: one call of `send` is under way at a time, and what is added meanwhile
 * goes with the next. A lone caller is sent at once, so batching adds no latency to an idle system.
 *
 * A call that fails fails for all that shared it.
 */
export class Coalescer<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>
  readonly #options: CoalescerOptions<Item>
  /** What is sent for many is sent in the context of none of them: one may be inside a transaction. */
  readonly #context = new AsyncResource('holdfast.coalescer')
  #waiting: Waiting<Item, Answer>[] = []
  #sending: Promise<void> | undefined

  constructor(send: (items: readonly Item[]) => Promise<readonly Answer[]>, options: CoalescerOptions<Item>) {
    this.#send = send
    this.#options = options
  }

  /** Resolves with the answer for `item`; rejects with what the shared call threw. */
  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#sending ??= this.#context.runInAsyncScope(async () => await this.#run())
    })
  }

  /** Resolves when nothing is waiting or under way. */
  async idle(): Promise<void> {
    await this.#sending
  }

  async #run(): Promise<void> {
    // Callers of the same turn go together.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const batch = this.#take()
      try {
        const answers = await this.#send(batch.map(({ item }) => item))
        for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.#sending = undefined
  }

  #take(): Waiting<Item, Answer>[] {
    const { maxItems, maxSize, sizeOf } = this.#options
    let size = 0
    let count = 0
    for (const { item } of this.#waiting) {
      size += sizeOf(item)
      if (count > 0 && (count === maxItems || size > maxSize)) break
      count += 1
    }
    return this.#waiting.splice(0, count)
  }
}
