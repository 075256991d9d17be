import { randomUUID } from 'node:crypto'
import { monotonicMs } from '../base/clock.ts'
import { errorToJson, isInstance } from '../base/error-text.ts'
import { InvalidArgumentError, UnavailableError } from '../base/errors.ts'
import { toRecordableJson } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { sleep } from '../base/sleep.ts'
import type { CheckedOptions, EffectCall } from './effect-options.ts'
import type { EffectId, EffectStore, Taken } from './effect-store.ts'
import { EffectBusyError, EffectUncertainError, NotHappenedError } from './errors.ts'
import { idempotencyKeyOf } from './idempotency-key.ts'
import type { FoundEffect } from './sql/find-effect.ts'

const WAIT_FIRST_MS = 20
const WAIT_MAX_MS = 1000
/** How long a write to the ledger is tried again while the database does not answer: repeating it does no harm. */
const PERSIST_MS = 30_000
/** An intent this old is asked for again before the call: a process that stood still may have lost the effect since. */
const FRESH_MS = 1000

export interface LedgerOptions {
  readonly store: EffectStore
  readonly signal: () => AbortSignal
  /** True once nothing that this caller writes can be accepted: trying again is over. */
  readonly isLost: () => boolean
  readonly onUncertain: (effect: EffectId, choice: 'ask' | 'repeat' | 'confirm') => void
  /** Something in a result could not be kept as it was. */
  readonly onAltered: (effect: EffectId, problem: string) => void
  /** Where a test may let the process die; see `testing/`. */
  readonly reached: (step: string) => Promise<void> | undefined
}

/** What an effect is asked to do, its options checked and its key known. */
export interface EffectRequest extends Omit<CheckedOptions, 'key'> {
  readonly effect: EffectId
  readonly fn: (call: EffectCall) => unknown
}

/** What comes of a doubt. */
type Verdict =
  | { readonly kind: 'happened'; readonly result: unknown }
  | { readonly kind: 'take'; readonly taken: Taken }
  /** It was decided meanwhile, by somebody else. */
  | { readonly kind: 'look-again' }

/**
 * Calls effects on the outside so that none happens twice in silence. The intent is committed before the call, what
 * came of it after, so whoever comes later knows: it happened (and what it gave), it did not, or nobody knows.
 *
 *     (nothing), open ── begin ─► intended ── returned ─► happened
 *                                   │  └── threw "not happened" ─► open
 *                                   └── threw, or died ─► in doubt ── ask, repeat or confirm
 *
 * Calls of one effect at the same time by one attempt are one call. By others, the second waits for the first.
 */
export class Ledger {
  readonly #options: LedgerOptions
  readonly #underWay = new Map<string, Promise<unknown>>()

  constructor(options: LedgerOptions) {
    this.#options = options
  }

  /**
   * @returns What the function gave, now or at an earlier call, as JSON holds it: the same at every attempt.
   * @throws {EffectUncertainError} It is in doubt, and a person has to decide. @throws {EffectBusyError} It is being called
   *   elsewhere for longer than `waitMs`. @throws {LeaseLostError} @throws {JobCancelledError} What the function threw.
   */
  async perform(request: EffectRequest): Promise<unknown> {
    const id = JSON.stringify([request.effect.name, request.effect.key])
    const shared = this.#underWay.get(id)
    if (shared !== undefined) return await shared
    const performing = this.#perform(request)
    this.#underWay.set(id, performing)
    try {
      return await performing
    } finally {
      this.#underWay.delete(id)
    }
  }

  async #perform(request: EffectRequest): Promise<unknown> {
    const { store, reached } = this.#options
    const { effect } = request
    const startedMs = monotonicMs()
    const call = randomUUID()
    let taken: Taken | null = null
    let isAskedAgain = false
    await reached(`${effect.name} before its intent`)
    for (let look = 0; ; look += 1) {
      const sentMs = monotonicMs()
      const { began, happened, result } = await this.#persist(
        async () => await store.begin(effect, call, taken),
      )
      if (happened) return result
      if (began) {
        await reached(`${effect.name} intended, before its call`)
        if (isAskedAgain || monotonicMs() - sentMs < FRESH_MS) return await this.#call(request, call)
        isAskedAgain = true
        continue
      }
      const found = await this.#find(effect)
      if (found === undefined || found.state === 'open') continue
      if (found.state === 'happened') return found.result
      if (found.held && !store.isOwn(found)) {
        await this.#wait(request, startedMs, look)
        continue
      }
      const verdict = await this.#decide(request, found)
      if (verdict.kind === 'happened') return verdict.result
      if (verdict.kind === 'take') taken = verdict.taken
    }
  }

  /** Waits a little for a call under way elsewhere. */
  async #wait({ effect, waitMs }: EffectRequest, startedMs: number, look: number): Promise<void> {
    const signal = this.#options.signal()
    const leftMs = startedMs + waitMs - monotonicMs()
    if (leftMs <= 0) throw new EffectBusyError({ effect: effect.name, key: effect.key, waitedMs: waitMs })
    await sleep(Math.min(leftMs, WAIT_MAX_MS, WAIT_FIRST_MS * 1.5 ** look), signal)
    signal.throwIfAborted()
  }

  /** What the caller does about a doubt. */
  async #decide(request: EffectRequest, found: FoundEffect): Promise<Verdict> {
    const { store, onUncertain } = this.#options
    const { effect, ifUncertain } = request
    const { intendedAt, call } = found
    if (ifUncertain === 'repeat') {
      onUncertain(effect, 'repeat')
      return { kind: 'take', taken: { call, isRefuted: false } }
    }
    if (ifUncertain === 'ask') {
      if (!(await this.#persist(async () => await store.ask(effect, call)))) return { kind: 'look-again' }
      onUncertain(effect, 'ask')
      const { tenant, name, key } = effect
      throw new EffectUncertainError({
        effect: name,
        key,
        tenant,
        idempotencyKey: idempotencyKeyOf(tenant, name, key),
        intendedAt,
      })
    }
    return await this.#confirm(effect, ifUncertain, found)
  }

  /** Asks the provider, by the caller's function. */
  async #confirm(
    effect: EffectId,
    ask: Exclude<CheckedOptions['ifUncertain'], string>,
    found: FoundEffect,
  ): Promise<Verdict> {
    const { store, signal, onUncertain, reached } = this.#options
    const { tenant, name, key } = effect
    const { call, calls, intendedAt } = found
    onUncertain(effect, 'confirm')
    const idempotencyKey = idempotencyKeyOf(tenant, name, key)
    const answer = await ask({ effect: name, key, idempotencyKey, intendedAt, calls, signal: signal() })
    if (typeof answer?.happened !== 'boolean') {
      const problem = 'must answer { happened: true, result } or { happened: false }'
      throw new InvalidArgumentError({ field: 'ifUncertain', problem })
    }
    if (!answer.happened) return { kind: 'take', taken: { call, isRefuted: true } }
    await reached(`${name} confirmed, before its record`)
    const json = this.#jsonOf(effect, answer.result)
    // Recorded for the call in doubt: if a later one has taken over, that one's outcome counts, and is looked for.
    const isRecorded = await this.#persist(async () => await store.record(effect, call, json))
    return isRecorded ? { kind: 'happened', result: JSON.parse(json) } : { kind: 'look-again' }
  }

  async #call(request: EffectRequest, call: string): Promise<unknown> {
    const { store, signal, reached } = this.#options
    const { effect, fn } = request
    let value: unknown
    try {
      if (signal().aborted) throw new NotHappenedError('the attempt has to end', { cause: signal().reason })
      const idempotencyKey = idempotencyKeyOf(effect.tenant, effect.name, effect.key)
      value = await fn({ idempotencyKey, signal: signal() })
    } catch (error) {
      throw await this.#threw(request, call, error)
    }
    await reached(`${effect.name} called, before its record`)
    const json = this.#jsonOf(effect, value)
    if (!(await this.#persist(async () => await store.record(effect, call, json)))) {
      // An answer that was lost had recorded it, or somebody else did: what is recorded is the same for everybody.
      const found = await this.#find(effect)
      if (found?.state === 'happened') return found.result
    }
    await reached(`${effect.name} recorded`)
    return JSON.parse(json)
  }

  /** Records how the call ended, and gives the error that the caller is to see. */
  async #threw(request: EffectRequest, call: string, error: unknown): Promise<unknown> {
    const { store } = this.#options
    const told = isInstance(error, NotHappenedError) ? error.cause : error
    const notHappened = told !== error || saysNotHappened(request, error)
    const how = { notHappened, error: errorToJson(told) }
    try {
      await this.#persist(async () => await store.end(request.effect, call, how))
    } catch {
      // Without a record it is in doubt; what the function threw is what the caller has to know.
    }
    return told
  }

  async #find(effect: EffectId): Promise<FoundEffect | undefined> {
    return await this.#persist(async () => await this.#options.store.find(effect))
  }

  #jsonOf(effect: EffectId, value: unknown): string {
    const { json, altered, problem } = toRecordableJson(value, {
      maxBytes: limits.effectResultBytes.default,
      field: 'result',
    })
    if (altered) this.#options.onAltered(effect, problem ?? 'altered')
    return json
  }

  async #persist<T>(write: () => Promise<T>): Promise<T> {
    const untilMs = monotonicMs() + PERSIST_MS
    for (let waitMs = WAIT_FIRST_MS; ; waitMs = Math.min(WAIT_MAX_MS, waitMs * 2)) {
      try {
        return await write()
      } catch (error) {
        if (!(error instanceof UnavailableError) || this.#options.isLost() || monotonicMs() > untilMs)
          throw error
        await sleep(waitMs)
      }
    }
  }
}

/** A function of the user's that throws, or answers something else than true, says nothing. */
function saysNotHappened(request: EffectRequest, error: unknown): boolean {
  try {
    return request.notHappened(error) === true
  } catch {
    return false
  }
}
