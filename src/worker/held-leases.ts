import { monotonicMs } from '../base/clock.ts'
import { OutcomeUnknownError } from '../base/errors.ts'
import type { EventHub } from '../base/events.ts'
import { type Database, runOne } from '../driver/operation.ts'
import { closeLeases } from '../jobs/sql/close-leases.ts'
import { releaseUnknownLeases } from '../jobs/sql/release-unknown-leases.ts'
import { Lease } from './lease.ts'

/** A claim whose connection broke may still be under way on the server, and commit: look again after so long. */
const LATE_COMMIT_MS = 60_000

/** Most leases ended by one statement. */
const MAX_CLOSED = 200

export interface HeldLeasesOptions {
  readonly database: Database
  readonly events: EventHub
  /** Id of the present life of this worker. */
  readonly workerId: () => bigint
  /** Called when {@link HeldLeases.closeFinished} has something to do. */
  readonly onFinished: () => void
}

/**
 * The leases that a worker knows it holds. After a claim whose answer was lost, jobs may be held that nobody runs, and
 * their lease would be renewed for ever; before the next claim such leases are given back.
 */
export class HeldLeases {
  readonly #options: HeldLeasesOptions
  readonly #open = new Map<bigint, Lease>()
  /** Of these, leases of which nothing is left, and that were settled in parts: they are not ended yet. */
  #finished: Lease[] = []
  /** When an answer to a claim was lost last, and when leases are to be compared with the database next. */
  #lostAnswerAtMs = Number.NEGATIVE_INFINITY
  #compareAtMs = Number.POSITIVE_INFINITY

  constructor(options: HeldLeasesOptions) {
    this.#options = options
  }

  /** True if they are to be compared with the database before the next claim. */
  get isUnsure(): boolean {
    return monotonicMs() >= this.#compareAtMs
  }

  get tokens(): readonly bigint[] {
    return [...this.#open.keys()]
  }

  /** A claim has given a lease for so many jobs. */
  open(token: bigint, workerId: bigint, size: number): Lease {
    const lease = new Lease(token, workerId, size)
    this.#open.set(token, lease)
    this.#options.events.emit('jobs.claimed', { count: size, fencingToken: token })
    return lease
  }

  /** So many jobs of it are recorded; `isClosed`: the statement that did it has ended the lease. */
  settled(lease: Lease, count: number, isClosed: boolean): void {
    lease.unsettled -= count
    if (lease.unsettled > 0 || !this.#open.has(lease.token)) return
    if (isClosed) this.#open.delete(lease.token)
    else {
      this.#finished.push(lease)
      this.#options.onFinished()
    }
  }

  /** Gives what `claim` gives. If its answer is lost, there may be a lease that is not known here. */
  async unsureUnlessAnswered<T>(claim: Promise<T>): Promise<T> {
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
    try {
      while (this.#finished.length > 0) held.push(...(await this.#closeSome(database)))
    } finally {
      this.#finished.push(...held.filter((lease) => this.#open.has(lease.token)))
    }
    return held.length
  }

  /** Gives those that are held by a transaction. */
  async #closeSome(database: Database): Promise<readonly Lease[]> {
    const leases = this.#finished.slice(0, MAX_CLOSED)
    const tokens = leases.map((lease) => lease.token)
    const answer = await runOne(database, closeLeases, { workerId: this.#options.workerId(), tokens })
    const busy = new Set(answer.busy)
    this.#finished = this.#finished.filter((lease) => !leases.includes(lease))
    for (const token of tokens) if (!busy.has(String(token))) this.#open.delete(token)
    // Something of it is neither here nor recorded: it goes back with what a lost answer hid.
    if (answer.left !== null) this.#compareAtMs = monotonicMs()
    return leases.filter(({ token }) => busy.has(String(token)))
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
      known: this.tokens,
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
}
