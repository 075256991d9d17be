import { Client } from 'pg'
import type { Adapter } from '../adapters/adapter.ts'
import { sharedNow } from './clock.ts'
import {
  type BulkResult,
  type PacedResult,
  SAMPLED,
  type SaturationResult,
  type Transaction,
} from './protocol.ts'

/** The enqueuing half of a run: as many callers as the workload says, in one process. */
export class Producer {
  readonly #adapter: Adapter
  readonly #url: string
  readonly #callers: number
  #clients: Client[] = []
  #finished = 0
  #saturating: { ended: boolean; wake: () => void; running: Promise<SaturationResult> } | undefined

  constructor(adapter: Adapter, url: string, callers: number) {
    this.#adapter = adapter
    this.#url = url
    this.#callers = callers
  }

  async warmUp(from: number, jobs: number, transaction: Transaction): Promise<void> {
    await this.#share(from, (n) => n < from + jobs, transaction)
    await this.#adapter.warmedUp?.()
  }

  async fill(from: number, jobs: number, batch: number, tomorrow: boolean): Promise<BulkResult> {
    const runAt = tomorrow ? new Date(Date.now() + 86_400_000) : undefined
    return await measured(async () => {
      // Two at a time: fills are not what is measured.
      let next = from
      const one = async () => {
        while (next < from + jobs) {
          const start = next
          const count = Math.min(batch, from + jobs - start)
          next += count
          await this.#adapter.enqueueMany(start, count, runAt)
        }
      }
      await Promise.all([one(), one()])
      return jobs
    })
  }

  async bulkFor(from: number, jobs: number, batch: number, maxMs: number): Promise<BulkResult> {
    const until = performance.now() + maxMs
    return await measured(async () => {
      let done = 0
      while (done < jobs && performance.now() < until) {
        await this.#adapter.enqueueMany(from + done, batch)
        done += batch
      }
      return done
    })
  }

  async singlesFor(from: number, ms: number, transaction: Transaction): Promise<BulkResult> {
    const until = performance.now() + ms
    return await measured(() => this.#share(from, () => performance.now() < until, transaction))
  }

  async pace(from: number, perSecond: number, ms: number): Promise<PacedResult> {
    const total = Math.floor((perSecond * ms) / 1_000)
    const calledAt = new Float64Array(total)
    const ackedAt = new Float64Array(total)
    const acks: Promise<void>[] = []
    const cpu = process.cpuUsage()
    const startedAt = sharedNow()
    while (acks.length < total) {
      const due = Math.min(total, Math.floor(((sharedNow() - startedAt) * perSecond) / 1_000) + 1)
      while (acks.length < due) {
        const index = acks.length
        calledAt[index] = sharedNow()
        acks.push(this.#enqueueNoting(from + index, ackedAt, index))
      }
      // Not a timer each millisecond: at 20/s its cost would be the producer's most.
      const nextMs = startedAt + (acks.length * 1_000) / perSecond - sharedNow()
      await new Promise((resolve) => setTimeout(resolve, Math.max(1, nextMs)))
    }
    await Promise.all(acks)
    return { calledAt, ackedAt, cpuSeconds: secondsOf(process.cpuUsage(cpu)) }
  }

  async #enqueueNoting(n: number, ackedAt: Float64Array, index: number): Promise<void> {
    await this.#adapter.enqueueOne(n)
    ackedAt[index] = sharedNow()
  }

  saturate(from: number, batch: number, outstanding: number): void {
    const state = { ended: false, wake: () => {} }
    const run = async (): Promise<SaturationResult> => {
      const ackedAt: number[] = []
      let jobs = 0
      const one = async () => {
        while (!state.ended) {
          if (jobs - this.#finished + batch > outstanding) {
            await new Promise<void>((resolve) => {
              state.wake = resolve
              setTimeout(resolve, 5)
            })
            continue
          }
          const start = from + jobs
          jobs += batch
          await this.#adapter.enqueueMany(start, batch)
          const at = sharedNow()
          for (let n = Math.ceil(start / SAMPLED) * SAMPLED; n < start + batch; n += SAMPLED)
            ackedAt[n / SAMPLED] = at
        }
      }
      await one()
      return { jobs, ackedAt: Float64Array.from(ackedAt) }
    }
    this.#saturating = Object.assign(state, { running: run() })
  }

  finished(jobs: number): void {
    this.#finished = jobs
    this.#saturating?.wake()
  }

  async endSaturation(): Promise<SaturationResult> {
    if (this.#saturating === undefined) throw new Error('not saturating')
    this.#saturating.ended = true
    this.#saturating.wake()
    return await this.#saturating.running
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.end()
  }

  /** All callers take the next job as long as `more` says; each awaits its acknowledgement. */
  async #share(from: number, more: (n: number) => boolean, transaction: Transaction): Promise<number> {
    let next = from
    const caller = async (enqueue: (n: number) => Promise<void>) => {
      while (more(next)) {
        const n = next
        next += 1
        await enqueue(n)
      }
    }
    const enqueues =
      transaction !== 'none'
        ? (await this.#connect()).map((client) => (n: number) => this.#inTransaction(client, n, transaction))
        : Array.from({ length: this.#callers }, () => (n: number) => this.#adapter.enqueueOne(n))
    await Promise.all(enqueues.map(caller))
    return next - from
  }

  async #connect(): Promise<readonly Client[]> {
    while (this.#clients.length < this.#callers) {
      const client = new Client({ connectionString: this.#url })
      await client.connect()
      this.#clients.push(client)
    }
    return this.#clients
  }

  async #inTransaction(client: Client, n: number, transaction: Transaction): Promise<void> {
    await client.query('begin')
    if (transaction === 'business') {
      await client.query({
        name: 'order',
        text: 'insert into business_order (number) values ($1)',
        values: [n],
      })
    }
    await this.#adapter.enqueueWith?.(client, n)
    await client.query('commit')
  }
}

async function measured(work: () => Promise<number>): Promise<BulkResult> {
  const cpu = process.cpuUsage()
  const startedAt = performance.now()
  const jobs = await work()
  return { jobs, elapsedMs: performance.now() - startedAt, cpuSeconds: secondsOf(process.cpuUsage(cpu)) }
}

export function secondsOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1e6
}
