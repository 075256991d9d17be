import { Client } from 'pg'
import type { RunningWorker, WorkerSettings } from '../adapter.ts'
import { claim, settle } from './schema.ts'

type JobRow = readonly [id: number, attempt: number, payload: unknown, key: string | null]

interface Claimed {
  readonly id: number
  readonly attempt: number
  readonly lease: Lease
  readonly payload: unknown
}

interface Lease {
  readonly id: string
  unsettled: number
}

const CLAIM_LIMIT = 500
/**
 * A claim that is first planned on empty tables would join `job` by scanning all of it, and keep that plan while the
 * table grows: 18,000 jobs/s in place of five times that. By index, each plan is right at every size.
 */
const PLANS = '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off'
/** Between an empty claim and the next while jobs still trickle in. */
const SHORT_POLL_MS = 5
/** Empty claims in a row before the worker says it sleeps and waits to be woken. */
const EMPTY_BEFORE_SLEEP = 4
/** A claim at least this often while asleep, and a heartbeat. */
const MAX_POLL_MS = 5_000
/** With a low-water hint, a scan from the start this often. */
const SWEEP_MS = 1_000

export async function startRawWorker(
  url: string,
  hint: boolean,
  settings: WorkerSettings,
): Promise<RunningWorker> {
  const loop = new RawWorker(url, hint, settings)
  await loop.start()
  return loop
}

/**
 * Claims into a buffer, runs it with `concurrency` slots, settles what is done: claim and settle each have one
 * statement in flight on a connection of their own. Sleeps as the design says: says so, looks once more, waits.
 */
class RawWorker implements RunningWorker {
  readonly #hint: boolean
  readonly #settings: WorkerSettings
  readonly #claimer: Client
  readonly #settler: Client
  readonly #listener: Client
  #workerId = 0
  #buffer: Claimed[] = []
  #next = 0
  #busySlots = 0
  #done: Claimed[] = []
  #settling = false
  #stopping = false
  #lowWater = 0
  #sweptAt = 0
  #wake: () => void = () => {}
  #woken = false
  #heartbeat: NodeJS.Timeout | undefined
  #claiming: Promise<void> | undefined
  #quiet: () => void = () => {}
  #failure: unknown

  constructor(url: string, hint: boolean, settings: WorkerSettings) {
    this.#hint = hint
    this.#settings = settings
    this.#claimer = new Client({ connectionString: url, options: PLANS })
    this.#settler = new Client({ connectionString: url, options: PLANS })
    this.#listener = new Client({ connectionString: url })
  }

  async start(): Promise<void> {
    for (const client of [this.#claimer, this.#settler, this.#listener]) await client.connect()
    const { rows } = await this.#claimer.query<{ id: number }>(
      "insert into worker (info) values ('{}') returning worker_id id",
    )
    this.#workerId = rows[0]?.id ?? 0
    this.#listener.on('notification', () => this.#wakeUp())
    await this.#listener.query('listen raw_wake')
    this.#heartbeat = setInterval(() => {
      void this.#listener.query('update worker set beat = now() where worker_id = $1', [this.#workerId])
    }, MAX_POLL_MS)
    this.#claiming = this.#claimLoop().catch((error: unknown) => {
      this.#failure = error
    })
  }

  async stop(): Promise<void> {
    this.#stopping = true
    this.#wakeUp()
    await this.#claiming
    await this.#whenQuiet()
    clearInterval(this.#heartbeat)
    await this.#claimer.query('delete from waiter where worker = $1', [this.#workerId])
    for (const client of [this.#claimer, this.#settler, this.#listener]) await client.end()
    if (this.#failure !== undefined) throw this.#failure
  }

  #wakeUp(): void {
    this.#woken = true
    this.#wake()
  }

  #whenQuiet(): Promise<void> {
    return new Promise((resolve) => {
      this.#quiet = () => {
        if (this.#next === this.#buffer.length && this.#busySlots === 0 && !this.#settling) resolve()
      }
      this.#quiet()
    })
  }

  async #claimLoop(): Promise<void> {
    let empty = 0
    while (!this.#stopping) {
      if (this.#buffer.length - this.#next >= CLAIM_LIMIT) {
        await this.#wait(SHORT_POLL_MS)
        continue
      }
      const claimed = await this.#claim()
      if (claimed > 0) {
        empty = 0
        this.#run()
        continue
      }
      empty += 1
      if (empty < EMPTY_BEFORE_SLEEP) await this.#wait(SHORT_POLL_MS)
      else await this.#sleep()
    }
  }

  async #sleep(): Promise<void> {
    await this.#claimer.query({
      name: 'sleep',
      text: 'insert into waiter values ($1) on conflict do nothing',
      values: [this.#workerId],
    })
    // A job that was committed before we said so told nobody: look once more.
    while (!this.#stopping && (await this.#claim()) === 0) await this.#wait(MAX_POLL_MS)
    this.#run()
    await this.#claimer.query({
      name: 'awake',
      text: 'delete from waiter where worker = $1',
      values: [this.#workerId],
    })
  }

  async #wait(ms: number): Promise<void> {
    if (!this.#woken) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.#woken = false
  }

  async #claim(): Promise<number> {
    const now = performance.now()
    const sweep = !this.#hint || now - this.#sweptAt > SWEEP_MS
    if (sweep) this.#sweptAt = now
    const { rows } = await this.#claimer.query<{
      lease_id: string
      hi: Record<string, number>
      jobs: JobRow[]
    }>({
      name: 'claim',
      text: claim,
      values: [CLAIM_LIMIT, this.#workerId, 0, [0], [sweep ? 0 : this.#lowWater]],
    })
    const [row] = rows
    if (row === undefined) return 0
    this.#lowWater = Math.max(this.#lowWater, row.hi['0'] ?? 0)
    const lease = { id: row.lease_id, unsettled: row.jobs.length }
    const claimed = row.jobs.map(([id, attempt, payload]) => ({ id, attempt, payload, lease }))
    this.#buffer = this.#buffer.slice(this.#next).concat(claimed)
    this.#next = 0
    return claimed.length
  }

  #run(): void {
    while (this.#busySlots < this.#settings.concurrency && this.#next < this.#buffer.length) {
      this.#busySlots += 1
      void this.#slot()
    }
  }

  async #slot(): Promise<void> {
    for (let job = this.#buffer[this.#next]; job !== undefined; job = this.#buffer[this.#next]) {
      this.#next += 1
      await this.#handle(job.payload)
      this.#done.push(job)
      if (!this.#settling) void this.#settleAll()
    }
    this.#busySlots -= 1
    if (this.#busySlots === 0) this.#wake()
    this.#quiet()
  }

  async #handle(payload: unknown): Promise<void> {
    this.#settings.onRun(payload)
  }

  async #settleAll(): Promise<void> {
    this.#settling = true
    await new Promise((resolve) => setImmediate(resolve))
    try {
      while (this.#done.length > 0) {
        const batch = this.#done
        this.#done = []
        await this.#settle(batch)
      }
    } catch (error) {
      this.#failure = error
    }
    this.#settling = false
    this.#quiet()
  }

  async #settle(batch: readonly Claimed[]): Promise<void> {
    const leases = new Set<Lease>()
    for (const { lease } of batch) {
      lease.unsettled -= 1
      leases.add(lease)
    }
    const all = [...leases]
    await this.#settler.query({
      name: 'settle',
      text: settle,
      values: [
        batch.map(({ id }) => id),
        this.#workerId,
        all.filter(({ unsettled }) => unsettled === 0).map(({ id }) => id),
        all.map(({ id }) => id),
        batch.map(({ attempt }) => attempt),
        batch.map(({ lease }) => lease.id),
      ],
    })
  }
}
