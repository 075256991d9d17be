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

/** Where the ledger is written: for an attempt, each write checks its fence. */
export interface EffectStore {
  /** True if the effect is this call's: `takes` names the call in doubt that it may take over from. */
  begin(effect: EffectId, call: string, takes: string | null): Promise<boolean>
  find(effect: EffectId): Promise<FoundEffect | undefined>
  /** True if it is recorded; false if a later call has taken the effect over. */
  record(effect: EffectId, call: string, result: string): Promise<boolean>
  end(effect: EffectId, call: string, how: CallEnd): Promise<void>
  /** Notes that a person has to decide. */
  ask(effect: EffectId, call: string): Promise<void>
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

  async begin(effect: EffectId, call: string, takes: string | null): Promise<boolean> {
    const answer = await runOne(this.#database, beginEffect, { ...this.#ids, ...effect, call, takes })
    requireLive(answer, this.#ids)
    return answer.began
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

  async ask(effect: EffectId, call: string): Promise<void> {
    await runOne(this.#database, askEffect, { ...effect, call, jobId: this.#ids.jobId })
  }

  isOwn(found: FoundEffect): boolean {
    return found.jobId === this.#ids.jobId && found.token === this.#ids.token
  }
}

/** The ledger as it is written outside jobs. */
export class OutsideEffects implements EffectStore {
  readonly #database: Database
  readonly #holdMs: number

  constructor(database: Database, holdMs: number) {
    this.#database = database
    this.#holdMs = holdMs
  }

  async begin(effect: EffectId, call: string, takes: string | null): Promise<boolean> {
    const holdMs = this.#holdMs
    return (await runOne(this.#database, beginEffectOutside, { ...effect, call, takes, holdMs })).began
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
  async ask(): Promise<void> {}

  isOwn(): boolean {
    return false
  }
}
