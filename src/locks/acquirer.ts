import { monotonicMs } from '../base/clock.ts'
import { ClosedError, OutcomeUnknownError, UnavailableError } from '../base/errors.ts'
import { sleep } from '../base/sleep.ts'
import type { Database } from '../driver/operation.ts'
import { GivingUp } from './giving-up.ts'
import type { Grant } from './lock.ts'
import type { CheckedAcquire, LockId } from './lock-options.ts'
import { release, type TryAnswer, tryLock, tryLockInside } from './lock-store.ts'
import { type ReleaseHints, WaitingLines } from './waiting-lines.ts'

export interface AcquirerOptions {
  /** The application's own connections. */
  readonly own: Database
  readonly hints: ReleaseHints
  /** Runs what goes on after a call as outside of any transaction. */
  readonly outside: <T>(fn: () => T) => T
}

/** A try whose answer was lost is sent again so often at once: with the same owner it is the same grant. */
const SENDS = 3
const RESEND_MS = 50
/** A grant to who has given up is released with so many tries; then its lease is left to pass. */
const UNDOS = 6
const UNDO_MS = 200
/** Who has given up is answered after so long, though the try that was under way has not come back. */
const PATIENCE_MS = 100
/** How long a closing application waits for what it releases again. */
const CLOSE_PATIENCE_MS = 5000
/** The first pause while an open transaction has the row, which may end at any moment; each further one is twice as long. */
const UNSEEN_MS = 10

/**
 * Tries for a lock until it is granted or given up. Who has given up (its time is over, its signal aborted, the application
 * closes) is never granted it: what a try that was under way is granted is released again.
 */
export class Acquirer {
  readonly #options: AcquirerOptions
  readonly #lines: WaitingLines
  readonly #closing = new AbortController()
  readonly #waits = new Set<GivingUp>()
  readonly #undoing = new Set<Promise<void>>()

  constructor(options: AcquirerOptions) {
    this.#options = options
    this.#lines = new WaitingLines(options.hints)
  }

  /** The lock may be free: whoever waits for it in this process should look. */
  wake(lock: LockId): void {
    this.#lines.wake(lock)
  }

  /** The grant; `undefined` if another has the lock, or it was given up. */
  async acquire(request: CheckedAcquire): Promise<Grant | undefined> {
    const { waitMs, signal } = request
    if (this.#closing.signal.aborted) throw new ClosedError({ what: 'app' })
    if (signal?.aborted) return undefined
    if (waitMs === 0 && signal === undefined) return await this.#askOnce(request)
    const givingUp = this.#givingUp(request)
    try {
      // Who has the lock already need not stand in line for it; nor does who would not wait.
      if (waitMs === 0 || request.isShared) {
        const answer = await this.#ask(request, null, givingUp)
        if (waitMs === 0 || answer?.grant) return answer?.grant
      }
      return await this.#wait(request, givingUp)
    } finally {
      givingUp.end()
    }
  }

  /** {@link acquire} in a caller's transaction, which sees nothing of hints: it looks again and again. */
  async acquireInside(database: Database, request: CheckedAcquire): Promise<Grant | undefined> {
    const { lock, owner, leaseMs, waitMs } = request
    const untilMs = monotonicMs() + waitMs
    const givingUp = this.#givingUp(request)
    try {
      for (let unseen = 0; !givingUp.signal.aborted; ) {
        const sentMs = monotonicMs()
        const answer = await tryLockInside(database, lock, { owner, leaseMs })
        const grant = grantOf(answer, sentMs)
        if (grant !== undefined || monotonicMs() >= untilMs) return grant
        unseen = answer.leftMs === null ? unseen + 1 : 0
        await sleep(pauseMs(request.retryMs, answer.leftMs, unseen), givingUp.signal)
      }
      return undefined
    } finally {
      givingUp.end()
    }
  }

  /** Ends all waits. When it resolves nothing of this is under way, or PostgreSQL has not answered for too long. */
  async close(): Promise<void> {
    this.#closing.abort()
    for (const wait of this.#waits) wait.giveUp()
    const patience = new GivingUp({ waitMs: CLOSE_PATIENCE_MS, signal: undefined, all: new Set() })
    await patience.unless(Promise.all(this.#undoing))
    patience.end()
  }

  #givingUp({ waitMs, signal }: CheckedAcquire): GivingUp {
    return new GivingUp({ waitMs: waitMs === 0 ? undefined : waitMs, signal, all: this.#waits })
  }

  async #wait(request: CheckedAcquire, givingUp: GivingUp): Promise<Grant | undefined> {
    const { lock, waitMs, retryMs, signal } = request
    const untilMs = monotonicMs() + waitMs
    const place = this.#lines.enter(lock, retryMs)
    let failure: unknown
    try {
      await place.isFirst(givingUp.signal)
      for (let unseen = 0; !givingUp.signal.aborted; ) {
        let leftMs: number | null = null
        try {
          const answer = await this.#ask(request, Math.max(1, untilMs - monotonicMs()), givingUp)
          if (answer === undefined) return undefined
          if (answer.grant !== undefined) return answer.grant
          failure = undefined
          leftMs = answer.leftMs
          unseen = leftMs === null ? unseen + 1 : 0
        } catch (error) {
          if (!isTransient(error)) throw error
          failure = error
          unseen = 0
          leftMs = Number.POSITIVE_INFINITY
        }
        await place.sleep(pauseMs(place.retryMs, leftMs, unseen), givingUp.signal)
      }
    } finally {
      place.leave()
    }
    const isOver = !signal?.aborted && !this.#closing.signal.aborted
    if (failure instanceof OutcomeUnknownError) void this.#undoLater(request, Promise.reject(failure))
    if (failure !== undefined && isOver) throw failure
    return undefined
  }

  /** One try, that nothing ends before its answer. */
  async #askOnce(request: CheckedAcquire): Promise<Grant | undefined> {
    const asking = this.#send(request, null, undefined)
    try {
      const answer = await asking
      return grantOf(answer, answer.sentMs)
    } catch (error) {
      void this.#undoLater(request, asking)
      throw error
    }
  }

  /** One try. `undefined`: given up; what it may still be granted is released again. */
  async #ask(
    request: CheckedAcquire,
    waitMs: number | null,
    givingUp: GivingUp,
  ): Promise<{ readonly grant: Grant | undefined; readonly leftMs: number | null } | undefined> {
    const asking = this.#send(request, waitMs, givingUp.signal)
    try {
      const answer = await givingUp.unless(asking)
      if (answer !== undefined) return { grant: grantOf(answer, answer.sentMs), leftMs: answer.leftMs }
    } catch (error) {
      // Who waits asks again, and finds what it was granted.
      if (request.waitMs === 0) void this.#undoLater(request, asking)
      throw error
    }
    // Mostly the try is over in a moment, and then nothing is left of it when the caller goes on.
    const patience = new GivingUp({ waitMs: PATIENCE_MS, signal: undefined, all: this.#waits })
    await patience.unless(this.#undoLater(request, asking))
    patience.end()
    return undefined
  }

  async #send(
    { lock, owner, leaseMs }: CheckedAcquire,
    waitMs: number | null,
    givenUp: AbortSignal | undefined,
  ): Promise<TryAnswer & { readonly sentMs: number }> {
    let lost: OutcomeUnknownError | undefined
    for (let sends = 1; ; sends += 1) {
      const sentMs = monotonicMs()
      try {
        return { ...(await tryLock(this.#options.own, lock, { owner, leaseMs, waitMs })), sentMs }
      } catch (error) {
        if (error instanceof OutcomeUnknownError) lost = error
        if (lost === undefined || !isTransient(error)) throw error
        if (sends === SENDS || givenUp?.aborted) throw lost
        await sleep(RESEND_MS, givenUp)
      }
    }
  }

  /** Releases again what a try of this call was granted, or may have been. What a shared owner had before is left alone. */
  #undoLater(request: CheckedAcquire, asking: Promise<TryAnswer>): Promise<void> {
    const undoing = this.#options.outside(async () => {
      const token = await this.#tokenOf(request, asking)
      if (token !== undefined) await this.#undo(request, token)
    })
    this.#undoing.add(undoing)
    return undoing.finally(() => this.#undoing.delete(undoing))
  }

  /** With which token a lock is to be released again; null: with any; `undefined`: it is not. */
  async #tokenOf(
    { isShared }: CheckedAcquire,
    asking: Promise<TryAnswer>,
  ): Promise<bigint | null | undefined> {
    try {
      const { held, again, fencingToken } = await asking
      return held && !(again && isShared) ? fencingToken : undefined
    } catch (error) {
      return error instanceof OutcomeUnknownError && !isShared ? null : undefined
    }
  }

  async #undo({ lock, owner }: CheckedAcquire, token: bigint | null): Promise<void> {
    for (let undos = 0; undos < UNDOS; undos += 1) {
      try {
        await release(this.#options.own, lock, { owner, token })
        return this.wake(lock)
      } catch {
        // The lease ends by itself; this is to make it sooner.
        await sleep(UNDO_MS * 2 ** undos, this.#closing.signal)
      }
    }
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof UnavailableError || error instanceof OutcomeUnknownError
}

function grantOf(answer: TryAnswer, sentMs: number): Grant | undefined {
  const { held, fencingToken, endsAt, leftMs } = answer
  if (!held || fencingToken === null || endsAt === null || leftMs === null) return undefined
  return { fencingToken, endsAt, leftMs, sentMs }
}

/** How long to wait before the next try: apart from others that began together, and not past the end of the lease. */
function pauseMs(retryMs: number, leftMs: number | null, unseen: number): number {
  const jittered = retryMs * (0.75 + Math.random() / 2)
  if (leftMs === null)
    return Math.min(jittered, UNSEEN_MS * 2 ** Math.min(unseen - 1, 20) * (0.5 + Math.random()))
  return Math.min(jittered, leftMs + 1 + Math.random() * 5)
}
