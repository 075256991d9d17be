import { monotonicMs } from '../base/clock.ts'
import { OutcomeUnknownError } from '../base/errors.ts'
import type { EventHub, JobFacts } from '../base/events.ts'
import { limits } from '../base/limits.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { claimFewJobs } from '../jobs/sql/claim-few-jobs.ts'
import { type ClaimedBatch, type ClaimRequest, claimJobs, type Look } from '../jobs/sql/claim-jobs.ts'
import { claimParkedJobs } from '../jobs/sql/claim-parked-jobs.ts'
import { closeLeases } from '../jobs/sql/close-leases.ts'
import { releaseUnknownLeases } from '../jobs/sql/release-unknown-leases.ts'
import { settleAttempts } from '../jobs/sql/settle-attempts.ts'
import { type Settled, settleAndClaim, settleCompleted } from '../jobs/sql/settle-completed.ts'
import { startWaiting } from '../jobs/sql/start-waiting.ts'
import { stopWaiting } from '../jobs/sql/stop-waiting.ts'
import { type ClaimedJob, readBatch, readFew } from './claimed-job.ts'
import { FailedAfterSettlingError, type Traded } from './exchange.ts'
import type { Wants } from './exchange-rules.ts'
import { Lease } from './lease.ts'
import { LAST, type LowWater, PRIORITIES } from './low-water.ts'
import type { Settlement, SettlementBatch } from './outbox.ts'
import { FEW } from './pace.ts'
import { itemOf, leasesOf, settleRequest } from './settle-request.ts'

/** A claim whose connection broke may still be under way on the server, and commit: look again after so long. */
const LATE_COMMIT_MS = 60_000

/** Most leases ended by one statement. */
const MAX_CLOSED = 200

const NO_JOBS: Traded = { jobs: [], passedOver: false }

export interface TrafficOptions {
  readonly database: Database
  readonly queues: readonly string[]
  readonly events: EventHub
  readonly lowWater: LowWater
  /** Id of the present life of this worker. */
  readonly workerId: () => bigint
  /** True if a job that has cost two workers their life may be taken. */
  readonly mayTakeSuspect: () => boolean
  /** Called with each settlement that PostgreSQL has answered, and whether it was refused or found cancelled. */
  readonly onSettled: (settlement: Settlement, answer: 'recorded' | 'refused' | 'cancelled') => void
  /** Called when {@link Traffic.closeFinished} has something to do. */
  readonly onFinished: () => void
}

/**
 * The statements of the exchange, and what their answers mean. Keeps which leases it knows of: after a claim
 * whose answer was lost, jobs may be held that nobody runs, and their lease would be renewed for ever; before
 * the next claim such leases are given back.
 */
export class Traffic {
  readonly #options: TrafficOptions
  readonly #open = new Map<bigint, Lease>()
  /** Of these, leases of which nothing is left, and that were settled in parts: they are not ended yet. */
  #finished: Lease[] = []
  /** When an answer to a claim was lost last, and when leases are to be compared with the database next. */
  #lostAnswerAtMs = Number.NEGATIVE_INFINITY
  #compareAtMs = Number.POSITIVE_INFINITY

  constructor(options: TrafficOptions) {
    this.#options = options
  }

  get #isUnsure(): boolean {
    return monotonicMs() >= this.#compareAtMs
  }

  get openLeases(): readonly bigint[] {
    return [...this.#open.keys()]
  }

  async trade(settle: SettlementBatch | undefined, wants: Wants | undefined): Promise<Traded> {
    const { database } = this.#options
    if (settle === undefined) return wants === undefined ? NO_JOBS : await this.#claim(wants)
    const request = settleRequest(settle)
    // One statement has one worker id: outcomes of a former life go alone.
    if (wants === undefined || settle.workerId !== this.#options.workerId() || this.#isUnsure) {
      const answer = await runOne(database, settleCompleted, request)
      this.#answered(settle.settlements, answer)
      if (wants === undefined) return NO_JOBS
      try {
        return await this.#claim(wants)
      } catch (error) {
        throw new FailedAfterSettlingError(error)
      }
    }
    const claim = this.#claimRequest(wants)
    const answer = await this.#unsureUnlessAnswered(
      runOne(database, settleAndClaim, { ...request, ...claim }),
    )
    this.#answered(settle.settlements, answer)
    this.#looked(wants, claim, answer, settle.settlements.length)
    return { jobs: this.#opened(answer, settle.workerId, wants), passedOver: answer.passedOver }
  }

  /** Records completions beside the trade, on a connection of their own. */
  async settleBeside(database: Database, batch: SettlementBatch): Promise<void> {
    this.#answered(batch.settlements, await runOne(database, settleCompleted, settleRequest(batch)))
  }

  async settleOthers(batch: SettlementBatch): Promise<void> {
    const answer = await runOne(this.#options.database, settleAttempts, {
      workerId: batch.workerId,
      tokens: [...leasesOf(batch.settlements).keys()].map((lease) => lease.token),
      items: `[${batch.settlements.map(itemOf).join(',')}]`,
      keep: limits.errorHistory.default,
    })
    this.#answered(batch.settlements, answer)
  }

  async setWaiting(waiting: boolean): Promise<void> {
    const { database, queues } = this.#options
    const workerId = this.#options.workerId()
    if (waiting) await run(database, startWaiting, { workerId, queues })
    else await run(database, stopWaiting, { workerId })
  }

  async claimParked(
    limit: number,
    names: readonly string[],
    contracts: readonly string[],
  ): Promise<readonly ClaimedJob[]> {
    const { database, queues } = this.#options
    const workerId = this.#options.workerId()
    const claim = runOne(database, claimParkedJobs, { workerId, queues, names, contracts, limit })
    return this.#opened(await this.#unsureUnlessAnswered(claim), workerId, { queues })
  }

  /** A job of the lease was completed by its handler's own commit. */
  committed(lease: Lease): void {
    this.#settled(lease, 1, false)
  }

  /** True if leases wait to be ended by {@link closeFinished}. */
  get hasFinished(): boolean {
    return this.#finished.length > 0
  }

  /**
   * Ends the leases that were settled in parts. They stay known until that has worked.
   *
   * @returns How many are left to be tried again: a transaction of a handler that was left behind holds them.
   */
  async closeFinished(database: Database): Promise<number> {
    const held: Lease[] = []
    while (this.#finished.length > 0) {
      const leases = this.#finished.slice(0, MAX_CLOSED)
      const tokens = leases.map((lease) => lease.token)
      const answer = await runOne(database, closeLeases, { workerId: this.#options.workerId(), tokens })
      const busy = new Set(answer.busy)
      held.push(...leases.filter(({ token }) => busy.has(String(token))))
      this.#finished = this.#finished.filter((lease) => !leases.includes(lease))
      for (const token of tokens) if (!busy.has(String(token))) this.#open.delete(token)
      // Something of it is neither here nor recorded: it goes back with what a lost answer hid.
      if (answer.left !== null) this.#compareAtMs = monotonicMs()
    }
    this.#finished.push(...held.filter((lease) => this.#open.has(lease.token)))
    return held.length
  }

  /** To be called when nothing will be claimed any more: jobs that a lost answer hid need not wait for a rescue. */
  async releaseIfUnsure(): Promise<void> {
    if (this.#compareAtMs < Number.POSITIVE_INFINITY) await this.releaseUnknown()
  }

  /** Gives back leases of this life that a lost answer has hidden. Only between claims: one under way is unknown too. */
  async releaseUnknown(): Promise<void> {
    const { database, workerId, events } = this.#options
    const { released } = await runOne(database, releaseUnknownLeases, {
      workerId: workerId(),
      known: this.openLeases,
    })
    const nowMs = monotonicMs()
    const mayComeLate = nowMs - this.#lostAnswerAtMs < LATE_COMMIT_MS
    this.#compareAtMs = mayComeLate ? nowMs + LATE_COMMIT_MS : Number.POSITIVE_INFINITY
    if (released > 0) events.emit('jobs.handedBack', { count: released, why: 'interrupted' })
  }

  /** Leases of an ended life are nobody's any more. */
  forget(): void {
    this.#open.clear()
    this.#finished = []
  }

  async #claim(wants: Wants): Promise<Traded> {
    if (this.#isUnsure) await this.releaseUnknown()
    const workerId = this.#options.workerId()
    const few = await this.#claimFew(wants)
    if (few !== undefined) return few
    const request = this.#claimRequest(wants)
    const answer = await this.#unsureUnlessAnswered(runOne(this.#options.database, claimJobs, request))
    this.#looked(wants, request, answer, 0)
    return { jobs: this.#opened(answer, workerId, wants), passedOver: answer.passedOver }
  }

  /** By the small statement, if that will do. */
  async #claimFew(wants: Wants): Promise<Traded | undefined> {
    const { database, lowWater, mayTakeSuspect, workerId } = this.#options
    const [queue, wanted, free] = [
      wants.queues[0] as string,
      wants.wanted[0] as number,
      wants.free[0] as number,
    ]
    if (wants.queues.length > 1 || wanted > FEW || wanted > free || lowWater.isMarked) return undefined
    const request = { workerId: workerId(), queue, limit: wanted }
    const rows = await this.#unsureUnlessAnswered(run(database, claimFewJobs, request))
    const token = rows[0]?.token ?? null
    const suspects = rows[0]?.suspects === true && mayTakeSuspect()
    if (token === null) return suspects ? undefined : NO_JOBS
    return {
      jobs: readFew(rows, this.#lease(token, request.workerId, rows.length), queue),
      passedOver: suspects,
    }
  }

  /** Keeps how far the queues were seen: up to what was taken, or, where fewer came than were asked for, to the end. */
  #looked(wants: Wants, request: ClaimRequest, look: Look, settled: number): void {
    const { lowWater } = this.#options
    const nowMs = monotonicMs()
    const taken = look.ids?.length ?? 0
    const got = new Map<string, number>([[wants.queues[0] as string, look.queues === null ? taken : 0]])
    for (const queue of (look.queues ?? []) as readonly string[]) got.set(queue, (got.get(queue) ?? 0) + 1)
    lowWater.took(look.elapsedMs, settled + taken)
    // What was passed over stays behind; so does whatever lies beyond a window.
    if (!request.suspects || look.passedOver || request.upto.some((upto) => upto !== LAST)) return
    const marks = (look.marks ?? []) as readonly (readonly [string | null, number, string])[]
    for (const [queue, priority, seq] of marks) {
      lowWater.saw(queue ?? (wants.queues[0] as string), priority, BigInt(seq), look, nowMs)
    }
    for (const [index, queue] of wants.queues.entries()) {
      if (queue === null || (got.get(queue) ?? 0) >= (wants.wanted[index] as number)) continue
      for (const priority of PRIORITIES) lowWater.saw(queue, priority, look.horizon, look, nowMs)
    }
  }

  #claimRequest({ queues, wanted, free }: Wants): ClaimRequest {
    const ranges = this.#options.lowWater.ranges(queues)
    return {
      workerId: this.#options.workerId(),
      queues,
      wanted,
      free,
      classQueues: ranges.map((range) => range.queue),
      classPriorities: ranges.map((range) => range.priority),
      after: ranges.map((range) => range.after),
      lastPriorities: ranges.map((range) => range.lastPriority),
      upto: ranges.map((range) => range.upto),
      suspects: this.#options.mayTakeSuspect(),
    }
  }

  async #unsureUnlessAnswered<T>(claim: Promise<T>): Promise<T> {
    try {
      return await claim
    } catch (error) {
      if (error instanceof OutcomeUnknownError) {
        this.#lostAnswerAtMs = monotonicMs()
        this.#compareAtMs = this.#lostAnswerAtMs
      }
      throw error
    }
  }

  #opened(batch: ClaimedBatch, workerId: bigint, asked: Pick<Wants, 'queues'>): readonly ClaimedJob[] {
    const { token, ids } = batch
    if (token === null || ids === null) return []
    return readBatch(batch, this.#lease(token, workerId, ids.length), asked.queues[0] as string)
  }

  #lease(token: bigint, workerId: bigint, size: number): Lease {
    const lease = new Lease(token, workerId, size)
    this.#open.set(token, lease)
    this.#options.events.emit('jobs.claimed', { count: size, fencingToken: token })
    return lease
  }

  #answered(settlements: readonly Settlement[], answer: Settled): void {
    const refused = answer.refused === null ? undefined : new Set(answer.refused as readonly string[])
    const cancelled = answer.cancelled === null ? undefined : new Set(answer.cancelled as readonly string[])
    for (const settlement of settlements) {
      const { id } = settlement.job
      const is = refused?.has(id) ? 'refused' : cancelled?.has(id) ? 'cancelled' : 'recorded'
      this.#options.onSettled(settlement, is)
    }
    for (const [lease, count] of leasesOf(settlements)) {
      this.#settled(lease, count, answer.closed?.includes(String(lease.token)) ?? false)
    }
  }

  #settled(lease: Lease, count: number, isClosed: boolean): void {
    lease.unsettled -= count
    if (lease.unsettled > 0 || !this.#open.has(lease.token)) return
    if (isClosed) this.#open.delete(lease.token)
    else {
      this.#finished.push(lease)
      this.#options.onFinished()
    }
  }
}

/** The facts by which events name an attempt. */
export function factsOf(job: ClaimedJob): JobFacts {
  return {
    jobId: job.id,
    jobName: job.name ?? '',
    queue: job.queue,
    attempt: job.attempt,
    fencingToken: job.lease.token,
  }
}
