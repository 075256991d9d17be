import { monotonicMs } from '../base/clock.ts'
import { DatabaseError } from '../base/errors.ts'
import { sleep } from '../base/sleep.ts'
import type { Wakeup } from '../base/wakeup.ts'
import { BulkSettler, MAX_BATCH } from './bulk-settler.ts'
import type { ClaimedJob } from './claimed-job.ts'
import type { Outbox, SettlementBatch } from './outbox.ts'
import { FEW, type Pace } from './pace.ts'
import type { Slots } from './slots.ts'

/** Longest that an outcome waits for others to be recorded with, while there is other work at hand. */
const LINGER_MS = 4
/** Completions do not wait if so many of whole leases are there. */
const LINGER_ENOUGH = 100
const STALE_BUFFER_MS = 100

/** What a claim is to ask for. */
export interface Wants {
  readonly queues: readonly string[]
  readonly wanted: readonly number[]
  readonly free: readonly number[]
}

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
  const { slots, outbox, pace, wakeup } = options
  let failures = 0
  let saidWaiting: boolean | undefined
  let life = options.life()
  let flight: Promise<Arrival> | undefined
  const bulk = new BulkSettler(options)
  const passedOver = new Set<string>()

  while (!signal.aborted) {
    try {
      const landing = flight
      flight = undefined
      const arrival = landing === undefined ? NOTHING : await landing
      if (life !== options.life()) saidWaiting = undefined
      life = options.life()
      handBackStale(options)
      for (const queue of arrival.passedOver) passedOver.add(queue)
      const startsFirst = arrival.passedOver.length > 0 || options.sawParked()
      if (startsFirst) {
        await start(options, arrival)
        takeIn(options, options.isStopping() ? [] : await options.claimParked())
      } else for (const [queue, count] of arrival.counts) slotsOf(slots, queue)?.expect(count)
      for (const queue of passedOver) {
        if ((slotsOf(slots, queue)?.free ?? 0) > 0 && passedOver.delete(queue)) pace.wake(queue)
      }

      const nowMs = monotonicMs()
      pace.update(nowMs)
      const isStopping = options.isStopping()
      const mayClaim = !isStopping && life !== 0n
      const wants = mayClaim ? wantsOf(slots, pace, nowMs) : undefined
      const modeChanged = mayClaim && saidWaiting !== !pace.busy
      if (!modeChanged && (wants !== undefined || shouldSettle(options, bulk))) {
        flight = roundTrip(options, wants, bulk)
        // Awaited at the top of the loop; until then it must not count as unhandled.
        flight.catch(() => {})
      }
      if (!startsFirst && arrival.jobs.length > 0) await start(options, arrival)
      failures = 0
      if (flight !== undefined) continue

      if (
        isStopping &&
        outbox.size === 0 &&
        !bulk.isBusy &&
        slots.every((s) => s.running === 0 && s.buffered === 0)
      )
        return
      if (modeChanged) {
        // Said before the look that follows, so that no job falls between the two.
        await options.setWaiting(!pace.busy)
        saidWaiting = !pace.busy
        if (saidWaiting) pace.startsWaiting(monotonicMs())
      } else if (!shouldSettle(options, bulk)) {
        await wakeup.sleep(sleepMs(options, bulk, nowMs, mayClaim), signal)
        await nextTurn()
      }
    } catch (error) {
      failures += 1
      const delayMs = options.retryDelayMs(failures)
      options.onError(error instanceof FailedAfterSettlingError ? error.cause : error, delayMs)
      saidWaiting = undefined
      await sleep(delayMs, signal)
    }
  }
  // Whoever aborted does not wait for what an answer brings; one that fails has no one to tell.
  await flight?.catch(() => undefined)
  await bulk.end()
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

function wantsOf(slots: readonly Slots[], pace: Pace, nowMs: number): Wants | undefined {
  const asking = slots.filter((s) => pace.isDue(s.queue, nowMs) && s.wanted > 0)
  if (asking.length === 0) return undefined
  let left = MAX_BATCH
  // Free slots of every queue come before what is claimed ahead for any.
  const sure = asking.map((s) => take(Math.min(s.free, s.wanted)))
  const wanted = asking.map((s, index) => {
    const certain = sure[index] as number
    if (certain > 0 && pace.asksFew(s.queue)) return Math.min(certain, FEW)
    return certain + take(s.wanted - certain)
  })
  return { queues: asking.map((s) => s.queue), wanted, free: asking.map((s) => s.free) }

  function take(count: number): number {
    const taken = Math.min(count, left)
    left -= taken
    return taken
  }
}

/** Outcomes wait for company only while the slots have enough to do meanwhile. */
function shouldSettle({ outbox, slots, isStopping }: ExchangeOptions, bulk: BulkSettler): boolean {
  if (outbox.size === 0) return false
  if (outbox.whole >= LINGER_ENOUGH) return !bulk.isBusy
  if (outbox.size >= MAX_BATCH || outbox.oldestMs() >= LINGER_MS || isStopping()) return true
  return !slots.some((s) => s.buffered > 0 || (s.ahead > 0 && s.running > 0))
}

function sleepMs(
  { outbox, slots, pace }: ExchangeOptions,
  bulk: BulkSettler,
  nowMs: number,
  mayClaim: boolean,
): number {
  const asking = !mayClaim ? [] : slots.filter((s) => s.wanted > 0).map((s) => s.queue)
  const lookMs = pace.nextLookAtMs(asking) - nowMs
  const lingerMs = outbox.size > 0 && !bulk.isBusy ? LINGER_MS - outbox.oldestMs() : Number.POSITIVE_INFINITY
  const staleMs = slots.some((s) => s.buffered > 0) ? STALE_BUFFER_MS / 2 : Number.POSITIVE_INFINITY
  return Math.max(0.5, Math.min(lookMs, lingerMs, staleMs, 60_000))
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
