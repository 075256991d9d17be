import { monotonicMs } from '../base/clock.ts'
import type { ClaimedJob } from './claimed-job.ts'
import type { Outcome } from './outcome.ts'

export interface Settlement {
  readonly job: ClaimedJob
  readonly durationMs: number
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

/**
 * Outcomes that wait to be recorded. Plain completions, the hot path, apart from all others; each batch holds
 * one life of the worker.
 *
 * What was sent without an answer comes back among the others, whatever it is: it may be recorded already, and
 * only their statement looks. What PostgreSQL refused for its content comes back to be sent one by one, so that
 * one outcome that cannot be stored does not hold up the rest.
 */
export class Outbox {
  #completed: Settlement[] = []
  #others: Settlement[] = []
  #sinceMs = 0

  get size(): number {
    return this.#completed.length + this.#others.length
  }

  /** How long the oldest outcome has waited; 0 if there is none. */
  oldestMs(): number {
    return this.size === 0 ? 0 : monotonicMs() - this.#sinceMs
  }

  add(settlement: Settlement): void {
    if (this.size === 0) this.#sinceMs = monotonicMs()
    const { outcome } = settlement
    if (outcome.to === 'completed' && !outcome.late) this.#completed.push(settlement)
    else this.#others.push(settlement)
  }

  takeCompleted(max: number): SettlementBatch | undefined {
    const batch = takeOneLife(this.#completed, max)
    this.#completed = batch.rest
    return batch.taken
  }

  takeOthers(max: number): SettlementBatch | undefined {
    const batch = takeOneLife(this.#others, this.#others[0]?.failures === undefined ? max : 1)
    this.#others = batch.rest
    return batch.taken
  }

  putBack(batch: SettlementBatch, wasRefused: boolean): void {
    if (this.size === 0) this.#sinceMs = monotonicMs()
    const back = wasRefused
      ? batch.settlements.map((settlement) => ({ ...settlement, failures: (settlement.failures ?? 0) + 1 }))
      : batch.settlements
    this.#others.push(...back)
  }
}

function takeOneLife(
  from: Settlement[],
  max: number,
): { taken: SettlementBatch | undefined; rest: Settlement[] } {
  const workerId = from[0]?.job.workerId
  if (workerId === undefined) return { taken: undefined, rest: from }
  // Almost always one life and less than `max`: then nothing is copied.
  if (from.length <= max && from.every((s) => s.job.workerId === workerId)) {
    return { taken: { workerId, settlements: from }, rest: [] }
  }
  const settlements = from.filter((s) => s.job.workerId === workerId).slice(0, max)
  const chosen = new Set(settlements)
  return { taken: { workerId, settlements }, rest: from.filter((s) => !chosen.has(s)) }
}
