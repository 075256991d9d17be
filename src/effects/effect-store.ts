import { monotonicMs } from '../base/clock.ts'
import { JobCancelledError, LeaseLostError } from '../base/errors.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { askEffect } from './sql/ask-effect.ts'
import { beginEffect, beginEffectOutside } from './sql/begin-effect.ts'
import { endEffect, endEffectOutside } from './sql/end-effect.ts'
import { type FoundEffect, findEffect } from './sql/find-effect.ts'
import { recordEffect, recordEffectOutside } from './sql/record-effect.ts'

/** What names an effect in the ledger. */
export interface EffectId {
  readonly tenant: string
  readonly name: string
  readonly key: string
}

/** How a call that threw ended. */
export interface CallEnd {
  readonly notHappened: boolean
  /** JSON text of what it threw. */
  readonly error: string | null
}

/** A call in doubt that another may take over from. */
export interface Taken {
  readonly call: string
  /** The provider says that it did not happen, nor any before it: there is no doubt about them any more. */
  readonly isRefuted: boolean
}

/** What came of an intent. */
export interface Begun {
  /** True if the effect is this call's. */
  readonly began: boolean
  /** True if it is known to have happened, and gave `result`. */
  readonly happened: boolean
  readonly result: unknown
}

/** Where the ledger is written: for an attempt, each write checks its fence. */
export interface EffectStore {
  /** Neither begun nor happened: look. */
  begin(effect: EffectId, call: string, taken: Taken | null): Promise<Begun>
  find(effect: EffectId): Promise<FoundEffect | undefined>
  /** True if this has recorded it; false if it was recorded before, or a later call has taken the effect over: look. */
  record(effect: EffectId, call: string, result: string): Promise<boolean>
  end(effect: EffectId, call: string, how: CallEnd): Promise<void>
  /** Notes that a person has to decide. False if the call is not in doubt any more: look again. */
  ask(effect: EffectId, call: string): Promise<boolean>
  /** True for a call that this attempt made itself. */
  isOwn(found: FoundEffect): boolean
}

/** The ids that a statement of an attempt names. */
export interface AttemptIds {
  readonly workerId: bigint
  readonly token: bigint
  readonly jobId: string
  readonly place: number
}

/**
 * @throws {LeaseLostError} The attempt may not write any more.
 * @throws {JobCancelledError} Somebody cancelled the job.
 */
export function requireLive(
  answer: { readonly live: boolean; readonly cancelled: boolean },
  ids: AttemptIds,
): void {
  if (!answer.live) throw new LeaseLostError({ jobId: BigInt(ids.jobId), fencingToken: ids.token })
  if (answer.cancelled) throw new JobCancelledError()
}

/** The ledger as an attempt of a job writes it. */
export class AttemptEffects implements EffectStore {
  readonly #database: Database
  readonly #ids: AttemptIds

  constructor(database: Database, ids: AttemptIds) {
    this.#database = database
    this.#ids = ids
  }

  async begin(effect: EffectId, call: string, taken: Taken | null): Promise<Begun> {
    const params = { ...this.#ids, ...effect, call, ...takenParams(taken) }
    const answer = await runOne(this.#database, beginEffect, params)
    requireLive(answer, this.#ids)
    return answer
  }

  async find(effect: EffectId): Promise<FoundEffect | undefined> {
    return (await run(this.#database, findEffect, effect))[0]
  }

  async record(effect: EffectId, call: string, result: string): Promise<boolean> {
    const answer = await runOne(this.#database, recordEffect, { ...this.#ids, ...effect, call, result })
    requireLive({ live: answer.live, cancelled: false }, this.#ids)
    return answer.recorded
  }

  async end(effect: EffectId, call: string, how: CallEnd): Promise<void> {
    await runOne(this.#database, endEffect, { ...this.#ids, ...effect, call, ...how })
  }

  async ask(effect: EffectId, call: string): Promise<boolean> {
    const answer = await runOne(this.#database, askEffect, { ...this.#ids, ...effect, call })
    requireLive(answer, this.#ids)
    return answer.asked
  }

  isOwn(found: FoundEffect): boolean {
    return found.jobId === this.#ids.jobId && found.token === this.#ids.token
  }
}

/** The ledger as it is written outside jobs. */
export class OutsideEffects implements EffectStore {
  readonly #database: Database
  readonly #holdMs: number
  readonly #onHeld: (sinceMs: number) => void

  /** `onHeld` is told of each hold, and since when it may be counted on by the monotonic clock. */
  constructor(database: Database, holdMs: number, onHeld: (sinceMs: number) => void) {
    this.#database = database
    this.#holdMs = holdMs
    this.#onHeld = onHeld
  }

  async begin(effect: EffectId, call: string, taken: Taken | null): Promise<Begun> {
    const params = { ...effect, call, ...takenParams(taken), holdMs: this.#holdMs }
    // PostgreSQL counts from a moment that is not before this one.
    const sentMs = monotonicMs()
    const answer = await runOne(this.#database, beginEffectOutside, params)
    if (answer.began) this.#onHeld(sentMs)
    return answer
  }

  async find(effect: EffectId): Promise<FoundEffect | undefined> {
    return (await run(this.#database, findEffect, effect))[0]
  }

  async record(effect: EffectId, call: string, result: string): Promise<boolean> {
    return (await runOne(this.#database, recordEffectOutside, { ...effect, call, result })).recorded
  }

  async end(effect: EffectId, call: string, how: CallEnd): Promise<void> {
    await runOne(this.#database, endEffectOutside, { ...effect, call, ...how })
  }

  /** No job waits: whoever called is told by the error. */
  async ask(): Promise<boolean> {
    return true
  }

  isOwn(): boolean {
    return false
  }
}

function takenParams(taken: Taken | null) {
  return { takes: taken?.call ?? null, refuted: taken?.isRefuted ?? false }
}
