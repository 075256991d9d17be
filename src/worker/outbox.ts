import { monotonicMs } from '../base/clock.ts'
import type { ClaimedJob } from './claimed-job.ts'
import type { Lease } from './lease.ts'
import type { Outcome } from './outcome.ts'

export interface Settlement {
  readonly job: ClaimedJob
  readonly durationMs: number
  /** When it ended, by the monotonic clock. */
  readonly endedAtMs: number
  readonly outcome: Outcome
  /** What the handler threw, for events; what is stored is in the outcome. */
  readonly error: unknown
  /** How many statements that held it PostgreSQL has refused for what they said. */
  readonly failures?: number
}

/** Settlements of one statement: all of one worker life. */
export interface SettlementBatch {
  readonly workerId: bigint
  readonly settlements: readonly Settlement[]
}

/** How long the first completions of a lease may wait for the last ones, while whole leases are there to be recorded. */
const PARTS_WAIT_MS = 10

/**
 * Outcomes that wait to be recorded. Plain completions, the hot path, apart from all others; each batch holds
 * one life of the worker, and where that can be, leases as a whole: one that is settled in parts must be looked
 * through once more before it ends.
 *
 * What was sent without an answer comes back among the others, whatever it is: it may be recorded already, and
 * only their statement looks. What PostgreSQL refused for its content comes back to be sent one by one, so that
 * one outcome that cannot be stored does not hold up the rest.
 */
export class Outbox {
  /** Leases of which all completions are here, and those of which some are. */
  #whole: Settlement[][] = []
  readonly #parts = new Map<Lease, Settlement[]>()
  #others: Settlement[] = []
  #wholeSize = 0
  #partsSize = 0

  get size(): number {
    return this.#wholeSize + this.#partsSize + this.#others.length
  }

  /** How many of the outcomes are completions of leases that are here as a whole. */
  get whole(): number {
    return this.#wholeSize
  }

  /** How long the oldest outcome has waited; 0 if there is none. */
  oldestMs(): number {
    const nowMs = monotonicMs()
    const firsts = [this.#whole[0]?.[0], this.#firstPart(), this.#others[0]]
    return nowMs - Math.min(...firsts.map((settlement) => settlement?.endedAtMs ?? nowMs))
  }

  add(settlement: Settlement): void {
    const { job, outcome } = settlement
    if (outcome.to !== 'completed' || outcome.late) {
      this.#others.push(settlement)
      return
    }
    const { lease } = job
    let completions = this.#parts.get(lease)
    if (completions === undefined) this.#parts.set(lease, (completions = []))
    completions.push(settlement)
    this.#partsSize += 1
    // Once a part was taken, what is left can never be the whole.
    if (completions.length < lease.size) return
    this.#parts.delete(lease)
    this.#partsSize -= lease.size
    this.#whole.push(completions)
    this.#wholeSize += lease.size
  }

  /**
   * At most `max`, which no lease may exceed: whole leases, and parts if there are none of those or they have waited
   * long enough.
   */
  takeCompleted(max: number): SettlementBatch | undefined {
    const part = this.#firstPart()
    const first = this.#whole[0]?.[0] ?? part
    if (first === undefined) return undefined
    const { workerId } = first.job.lease
    const settlements = this.#takeWhole(workerId, max)
    const partWaitedMs = monotonicMs() - (part?.endedAtMs ?? Number.POSITIVE_INFINITY)
    if (settlements.length > 0 && partWaitedMs < PARTS_WAIT_MS) return { workerId, settlements }
    return { workerId, settlements: [...settlements, ...this.#takeParts(workerId, max - settlements.length)] }
  }

  takeOthers(max: number): SettlementBatch | undefined {
    const first = this.#others[0]
    if (first === undefined) return undefined
    const most = first.failures === undefined ? max : 1
    const { workerId } = first.job.lease
    const settlements: Settlement[] = []
    // Of a job that was lost and claimed again, one claim at a time: the answer names jobs, not claims.
    const jobs = new Set<string>()
    this.#others = this.#others.filter((s) => {
      const isOfBatch = s.job.lease.workerId === workerId && !jobs.has(s.job.id)
      const isTaken = settlements.length < most && isOfBatch
      if (isTaken) {
        settlements.push(s)
        jobs.add(s.job.id)
      }
      return !isTaken
    })
    return { workerId, settlements }
  }

  putBack(batch: SettlementBatch, wasRefused: boolean): void {
    const back = wasRefused
      ? batch.settlements.map((settlement) => ({ ...settlement, failures: (settlement.failures ?? 0) + 1 }))
      : batch.settlements
    this.#others.push(...back)
  }

  #takeWhole(workerId: bigint, max: number): readonly Settlement[] {
    let taken: readonly Settlement[] = []
    this.#whole = this.#whole.filter((completions) => {
      if (completions[0]?.job.lease.workerId !== workerId || taken.length + completions.length > max)
        return true
      taken = taken.length === 0 ? completions : [...taken, ...completions]
      return false
    })
    this.#wholeSize -= taken.length
    return taken
  }

  #takeParts(workerId: bigint, max: number): readonly Settlement[] {
    const taken: Settlement[] = []
    for (const [lease, completions] of this.#parts) {
      if (taken.length === max) break
      if (lease.workerId !== workerId) continue
      taken.push(...completions.splice(0, max - taken.length))
      if (completions.length === 0) this.#parts.delete(lease)
    }
    this.#partsSize -= taken.length
    return taken
  }

  #firstPart(): Settlement | undefined {
    for (const completions of this.#parts.values()) return completions[0]
    return undefined
  }
}
