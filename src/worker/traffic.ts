import { monotonicMs } from '../base/clock.ts'
import type { EventHub, JobFacts } from '../base/events.ts'
import { limits } from '../base/limits.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { claimFewJobs } from '../jobs/sql/claim-few-jobs.ts'
import { type ClaimedBatch, type ClaimRequest, claimJobs, type Look } from '../jobs/sql/claim-jobs.ts'
import { claimParkedJobs } from '../jobs/sql/claim-parked-jobs.ts'
import { settleAttempts } from '../jobs/sql/settle-attempts.ts'
import { type Settled, settleAndClaim, settleCompleted } from '../jobs/sql/settle-completed.ts'
import { startWaiting } from '../jobs/sql/start-waiting.ts'
import { stopWaiting } from '../jobs/sql/stop-waiting.ts'
import { type ClaimedJob, readBatch, readFew } from './claimed-job.ts'
import type { Snapshot } from './class-marks.ts'
import { FailedAfterSettlingError, type Traded } from './exchange.ts'
import type { Wants } from './exchange-rules.ts'
import { HeldLeases } from './held-leases.ts'
import type { LowWater } from './low-water.ts'
import type { Settlement, SettlementBatch } from './outbox.ts'
import { FEW } from './pace.ts'
import { itemOf, leasesOf, settleRequest } from './settle-request.ts'

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
  /** Called when `leases.closeFinished` has something to do. */
  readonly onFinished: () => void
}

/** The statements of the exchange, and what their answers mean for the leases that it holds. */
export class Traffic {
  readonly #options: TrafficOptions
  readonly leases: HeldLeases

  constructor(options: TrafficOptions) {
    this.#options = options
    this.leases = new HeldLeases(options)
  }

  async trade(settle: SettlementBatch | undefined, wants: Wants | undefined): Promise<Traded> {
    const { database } = this.#options
    if (settle === undefined) return wants === undefined ? NO_JOBS : await this.#claim(wants)
    const request = settleRequest(settle)
    // One statement has one worker id: outcomes of a former life go alone.
    if (wants === undefined || settle.workerId !== this.#options.workerId() || this.leases.isUnsure) {
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
    const answer = await this.leases.unsureUnlessAnswered(
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
    return this.#opened(await this.leases.unsureUnlessAnswered(claim), workerId, { queues })
  }

  async #claim(wants: Wants): Promise<Traded> {
    if (this.leases.isUnsure) await this.leases.releaseUnknown()
    const workerId = this.#options.workerId()
    const few = await this.#claimFew(wants)
    if (few !== undefined) return few
    const request = this.#claimRequest(wants)
    const answer = await this.leases.unsureUnlessAnswered(runOne(this.#options.database, claimJobs, request))
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
    const rows = await this.leases.unsureUnlessAnswered(run(database, claimFewJobs, request))
    const token = rows[0]?.token ?? null
    const suspects = rows[0]?.suspects === true && mayTakeSuspect()
    if (token === null) return suspects ? undefined : NO_JOBS
    return {
      jobs: readFew(rows, this.leases.open(token, request.workerId, rows.length), queue),
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
    // What was passed over is behind no mark.
    if (!request.suspects || look.passedOver) return
    const snapshot = readSnapshot(look.snapshot)
    const marks = (look.marks ?? []) as readonly (readonly [string | null, number, string])[]
    for (const [index, queue] of wants.queues.entries()) {
      const taken = marks
        .filter(([of]) => (of ?? wants.queues[0]) === queue)
        .map(([, priority, seq]) => [priority, BigInt(seq)] as const)
      const isAll = (got.get(queue) ?? 0) < (wants.wanted[index] as number)
      lowWater.saw(queue, { taken, horizon: isAll ? look.horizon : undefined }, snapshot, nowMs)
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

  #opened(batch: ClaimedBatch, workerId: bigint, asked: Pick<Wants, 'queues'>): readonly ClaimedJob[] {
    const { token, ids } = batch
    if (token === null || ids === null) return []
    return readBatch(batch, this.leases.open(token, workerId, ids.length), asked.queues[0] as string)
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
      this.leases.settled(lease, count, answer.closed?.includes(String(lease.token)) ?? false)
    }
  }
}

/** Reads the text of a `pg_snapshot`: `xmin:xmax:` and the transactions under way, with commas. */
function readSnapshot(text: string): Snapshot {
  const [xmin = '', xmax = '', running = ''] = text.split(':')
  return {
    xmin: BigInt(xmin),
    xmax: BigInt(xmax),
    running: running === '' ? [] : running.split(',').map(BigInt),
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
