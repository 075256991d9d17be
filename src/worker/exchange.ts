import { monotonicMs } from '../base/clock.ts'
import { DatabaseError } from '../base/errors.ts'
import { sleep } from '../base/sleep.ts'
import type { Wakeup } from '../base/wakeup.ts'
import { BulkSettler, MAX_BATCH } from './bulk-settler.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { STALE_BUFFER_MS, shouldSettle, sleepMs, type Wants, wantsOf } from './exchange-rules.ts'
import type { Outbox, SettlementBatch } from './outbox.ts'
import type { Pace } from './pace.ts'
import type { Slots } from './slots.ts'

/**
 * The outcomes of a trade are recorded, and what followed in it failed: they must not be sent again. Sent twice they
 * are told twice, and a lease of which too many jobs count as settled would be given back while jobs of it run.
 */
export class FailedAfterSettlingError extends Error {
  override readonly name = 'FailedAfterSettlingError'

  constructor(cause: unknown) {
    super('the outcomes are recorded; the claim that followed failed', { cause })
  }
}

/** What a trade brought up. */
export interface Traded {
  readonly jobs: readonly ClaimedJob[]
  /** Jobs that need care were there, and no slot was free for them. */
  readonly passedOver: boolean
}

export interface ExchangeOptions {
  readonly slots: readonly Slots[]
  readonly outbox: Outbox
  readonly pace: Pace
  /** Woken by notifications, freed slots and new outcomes. */
  readonly wakeup: Wakeup
  /**
   * Records and claims, by one statement where that can be; either part may be missing. Throws if it is not known to
   * have worked, {@link FailedAfterSettlingError} if recording is known to.
   */
  readonly trade: (settle: SettlementBatch | undefined, wants: Wants | undefined) => Promise<Traded>
  /** True if jobs were parked that this worker may know. */
  readonly sawParked: () => boolean
  /** Jobs that were parked and that this worker knows, as many as slots are free. Never beside another statement. */
  readonly claimParked: () => Promise<readonly ClaimedJob[]>
  readonly settleOthers: (batch: SettlementBatch) => Promise<void>
  /** Records completions on a second connection; missing where there is none. */
  readonly settleBeside: ((batch: SettlementBatch) => Promise<void>) | undefined
  readonly setWaiting: (waiting: boolean) => Promise<void>
  /** Id of the worker's life; 0 between two: nothing can be claimed then. What a former life has said is forgotten. */
  readonly life: () => bigint
  readonly handBack: (jobs: readonly ClaimedJob[]) => void
  readonly onError: (error: unknown, retryInMs: number) => void
  readonly retryDelayMs: (failures: number) => number
  /** True once nothing may be claimed any more. */
  readonly isStopping: () => boolean
}

/**
 * The worker's one traffic with the queue: outcomes go down, jobs come up, one statement at a time; in bulk, outcomes
 * go beside it by a connection of their own, so that PostgreSQL records and claims at once.
 *
 * While a statement is under way outcomes gather and slots free; the next statement takes them all, and claims
 * as much as the slots want. So batches grow with the load by themselves, and a lone outcome in an idle worker
 * goes at once. With work at hand an outcome waits up to 4 ms for company, which costs nobody anything: the
 * buffer keeps the slots busy.
 *
 * Jobs that came up start when the next statement has been sent, so that PostgreSQL works while they run. Only
 * jobs that need care (see {@link Slots}) are claimed by free slots, which are known when all at hand has started:
 * when some were passed over, the next statement waits until then.
 *
 * A failed statement keeps its outcomes for the next try and never ends the loop. Returns when `isStopping` and
 * no job runs and every outcome is recorded, or when `signal` aborts.
 */
export async function runExchange(options: ExchangeOptions, signal: AbortSignal): Promise<void> {
  const exchange = new Exchange(options)
  let failures = 0
  while (!signal.aborted && !exchange.hasEnded) {
    try {
      await exchange.turn(signal)
      failures = 0
    } catch (error) {
      failures += 1
      const delayMs = options.retryDelayMs(failures)
      options.onError(error instanceof FailedAfterSettlingError ? error.cause : error, delayMs)
      options.pace.forgetSaid()
      await sleep(delayMs, signal)
    }
  }
  await exchange.end()
}

class Exchange {
  readonly #options: ExchangeOptions
  readonly #bulk: BulkSettler
  /** The statement under way. */
  #flight: Promise<Arrival> | undefined
  #life: bigint
  /** Queues in which jobs that need care wait for a free slot. */
  readonly #passedOver = new Set<string>()
  hasEnded = false

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.#bulk = new BulkSettler(options)
    this.#life = options.life()
  }

  /** Takes in what the last statement brought, sends the next one, or waits for something to do. */
  async turn(signal: AbortSignal): Promise<void> {
    const { pace, wakeup } = this.#options
    const arrival = await this.#land()
    const isStarted = await this.#startFirst(arrival)
    this.#lookForPassedOver()

    const nowMs = monotonicMs()
    pace.update(nowMs)
    const mayClaim = !this.#options.isStopping() && this.#life !== 0n
    const hasToSay = mayClaim && pace.hasToSay
    if (!hasToSay) this.#send(mayClaim, nowMs)
    if (!isStarted) await start(this.#options, arrival)
    if (this.#flight !== undefined) return

    if (this.#isOver()) this.hasEnded = true
    else if (hasToSay) await this.#sayWaiting()
    else if (!shouldSettle(this.#options, this.#bulk)) {
      await wakeup.sleep(sleepMs(this.#options, this.#bulk, nowMs, mayClaim), signal)
      await nextTurn()
    }
  }

  /** Whoever aborted does not wait for what an answer brings; one that fails has no one to tell. */
  async end(): Promise<void> {
    await this.#flight?.catch(() => undefined)
    await this.#bulk.end()
  }

  async #land(): Promise<Arrival> {
    const landing = this.#flight
    this.#flight = undefined
    const arrival = landing === undefined ? NOTHING : await landing
    const life = this.#options.life()
    if (this.#life !== life) this.#options.pace.forgetSaid()
    this.#life = life
    handBackStale(this.#options)
    return arrival
  }

  /**
   * Starts what arrived before the next statement, where that depends on which slots are free then. Otherwise counts
   * it as here, and says false.
   */
  async #startFirst(arrival: Arrival): Promise<boolean> {
    const { slots, sawParked, isStopping, claimParked } = this.#options
    for (const queue of arrival.passedOver) this.#passedOver.add(queue)
    if (arrival.passedOver.length > 0 || sawParked()) {
      await start(this.#options, arrival)
      takeIn(this.#options, isStopping() ? [] : await claimParked())
      return true
    }
    for (const [queue, count] of arrival.counts) slotsOf(slots, queue)?.expect(count)
    return arrival.jobs.length === 0
  }

  #lookForPassedOver(): void {
    const { slots, pace } = this.#options
    for (const queue of this.#passedOver) {
      if ((slotsOf(slots, queue)?.free ?? 0) > 0 && this.#passedOver.delete(queue)) pace.wake(queue)
    }
  }

  #send(mayClaim: boolean, nowMs: number): void {
    const wants = mayClaim ? wantsOf(this.#options, nowMs) : undefined
    if (wants === undefined && !shouldSettle(this.#options, this.#bulk)) return
    this.#flight = roundTrip(this.#options, wants, this.#bulk)
    // Awaited in the next turn; until then it must not count as unhandled.
    this.#flight.catch(() => {})
  }

  #isOver(): boolean {
    const { slots, outbox, isStopping } = this.#options
    if (!isStopping() || outbox.size > 0 || this.#bulk.isBusy) return false
    return slots.every((s) => s.running === 0 && s.buffered === 0)
  }

  /** Said before the look that follows, so that no job falls between the two. */
  async #sayWaiting(): Promise<void> {
    const { pace, setWaiting } = this.#options
    const waiting = !pace.busy
    await setWaiting(waiting)
    pace.said(waiting, monotonicMs())
  }
}

/** What a round trip brought. */
interface Arrival {
  readonly jobs: readonly ClaimedJob[]
  readonly counts: ReadonlyMap<string, number>
  /** Queues in which jobs that need care may have been passed over. */
  readonly passedOver: readonly string[]
}

const NOTHING: Arrival = { jobs: [], counts: new Map(), passedOver: [] }

async function roundTrip(
  options: ExchangeOptions,
  wants: Wants | undefined,
  bulk: BulkSettler,
): Promise<Arrival> {
  const { outbox, pace } = options
  const others = outbox.takeOthers(MAX_BATCH)
  if (others !== undefined) await orPutBack(outbox, others, options.settleOthers(others))
  const completed = wants !== undefined && bulk.takesOver() ? undefined : outbox.takeCompleted(MAX_BATCH)
  if (completed === undefined && wants === undefined) return NOTHING
  for (const queue of wants?.queues ?? []) pace.looks(queue)
  const { jobs, passedOver } = await orPutBack(outbox, completed, options.trade(completed, wants))
  if (wants === undefined) return NOTHING

  const nowMs = monotonicMs()
  const counts = new Map<string, number>()
  for (const job of jobs) counts.set(job.queue, (counts.get(job.queue) ?? 0) + 1)
  for (const [index, queue] of wants.queues.entries()) {
    const got = counts.get(queue) ?? 0
    pace.looked(queue, { wanted: wants.wanted[index] as number, got }, nowMs)
  }
  return { jobs, counts, passedOver: passedOver ? wants.queues : [] }
}

/** Starts what arrived; handlers that need no more than a moment end within this turn. */
async function start(options: ExchangeOptions, { jobs }: Arrival): Promise<void> {
  takeIn(options, jobs)
  for (const s of options.slots) s.expect(0)
  await nextTurn()
}

function slotsOf(slots: readonly Slots[], queue: string): Slots | undefined {
  return slots.find((s) => s.queue === queue)
}

/** Jobs that came after a stop, or for a life that has ended meanwhile and whose lease nobody renews, go back. */
function takeIn({ slots, isStopping, life, handBack }: ExchangeOptions, jobs: readonly ClaimedJob[]): void {
  const mine = isStopping() ? [] : jobs.filter((job) => job.lease.workerId === life())
  if (mine.length < jobs.length) handBack(jobs.filter((job) => !mine.includes(job)))
  const byQueue = new Map(slots.map((s) => [s.queue, s]))
  for (const job of mine) byQueue.get(job.queue)?.add(job)
}

async function orPutBack<T>(
  outbox: Outbox,
  batch: SettlementBatch | undefined,
  sent: Promise<T>,
): Promise<T> {
  try {
    return await sent
  } catch (error) {
    if (batch !== undefined && !(error instanceof FailedAfterSettlingError))
      outbox.putBack(batch, error instanceof DatabaseError)
    throw error
  }
}

function handBackStale({ slots, handBack }: ExchangeOptions): void {
  for (const queue of slots) {
    const stale = queue.takeStale(STALE_BUFFER_MS)
    if (stale.length > 0) handBack(stale)
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
