import { type ClientBase, Pool } from 'pg'
import { jobInput } from '../adapter.ts'
import { enqueue } from './schema.ts'

interface Waiting {
  readonly n: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** At most this many jobs in one coalesced statement. */
const MAX_COALESCED = 1_000

/** Enqueues one by one, or gathers the calls that come while a statement is in flight. */
export class RawProducer {
  readonly #pool: Pool
  readonly #coalesce: boolean
  #waiting: Waiting[] = []
  #flying = false

  constructor(url: string, callers: number, coalesce: boolean) {
    this.#pool = new Pool({ connectionString: url, max: Math.max(2, Math.min(callers, 20)) })
    this.#pool.on('error', () => {})
    this.#coalesce = coalesce
  }

  get pool(): Pool {
    return this.#pool
  }

  one(n: number): Promise<void> {
    if (!this.#coalesce) return this.send([{ d: jobInput(n) }])
    return new Promise((resolve, reject) => {
      this.#waiting.push({ n, resolve, reject })
      if (!this.#flying) void this.#fly()
    })
  }

  async send(jobs: readonly object[], client: ClientBase | Pool = this.#pool): Promise<void> {
    await client.query({ name: 'enqueue', text: enqueue, values: [JSON.stringify(jobs)] })
  }

  async #fly(): Promise<void> {
    this.#flying = true
    // Callers that were woken by the same answer call again within this turn: let them all aboard.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const aboard = this.#waiting.splice(0, MAX_COALESCED)
      try {
        await this.send(aboard.map(({ n }) => ({ d: jobInput(n) })))
        for (const { resolve } of aboard) resolve()
      } catch (error) {
        for (const { reject } of aboard) reject(error)
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    this.#flying = false
  }
}
