import { checkName, checkNumber } from '../base/check.ts'
import { monotonicMs } from '../base/clock.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import type { EventHub } from '../base/events.ts'
import { limits } from '../base/limits.ts'
import { startTimer } from '../base/sleep.ts'
import type { Database } from '../driver/operation.ts'
import { checkOutsideEffect, type OutsideEffect } from './effect-name.ts'
import { checkEffectOptions, type EffectCall, type EffectOptions } from './effect-options.ts'
import { OutsideEffects } from './effect-store.ts'
import { type EffectFacts, EffectTimeoutError } from './errors.ts'
import { Ledger } from './ledger.ts'

/** Options of `app.effect`. */
export interface OutsideEffectOptions<T> extends EffectOptions<T> {
  /** What the effect is for the business, as for `ctx.effect`. Required. */
  readonly key: string
  /** Whose effect it is: 1 to 255 bytes. Default: nobody's in particular. */
  readonly tenant?: string | undefined
  /**
   * How long the call counts as under way, in milliseconds: 1 s to 24 h. Then its signal aborts, and whoever asks for the
   * same effect finds it in doubt. Nothing renews it: make it longer than the call can take. Default: 60,000.
   */
  readonly holdMs?: number | undefined
}

export interface OutsideServices {
  readonly database: Database
  readonly events: EventHub
  /** @throws {OutsideTransactionError} The call is made inside a transaction. */
  readonly requireOutside: () => void
}

/** {@link Ledger.perform} outside jobs: nothing fences it, and a hold of its own takes the place of the lease. */
export async function performOutside<T>(
  services: OutsideServices,
  name: OutsideEffect,
  options: OutsideEffectOptions<T>,
  fn: (call: EffectCall) => T | Promise<T>,
): Promise<T> {
  const { key, ...checked } = checkEffectOptions(options, fn)
  if (key === undefined)
    throw new InvalidArgumentError({
      field: 'key',
      problem: 'must be given: outside jobs nothing stands for it',
    })
  const tenant = options.tenant === undefined ? '' : checkName('tenant', options.tenant)
  const effect = { tenant, name: checkOutsideEffect('name', name), key }
  const holdMs = checkNumber('holdMs', options.holdMs, limits.effectHoldMs)
  services.requireOutside()
  const { database, events } = services
  const hold = new Hold(holdMs, { effect: name, key })
  const ledger = new Ledger({
    store: new OutsideEffects(database, holdMs, (sinceMs) => hold.begins(sinceMs)),
    signal: () => hold.signal,
    isLost: () => false,
    onUncertain: (_, choice) => events.emit('effect.uncertain', { effect: name, key, choice }),
    onAltered: () => {},
    reached: () => undefined,
  })
  try {
    return (await ledger.perform({ ...checked, effect, fn })) as T
  } finally {
    hold.end()
  }
}

/** Aborts the signal of a call when its hold is over, which is before PostgreSQL lets others take over. */
class Hold {
  readonly #holdMs: number
  readonly #facts: EffectFacts
  #controller = new AbortController()
  #stopTimer: (() => void) | undefined

  constructor(holdMs: number, facts: EffectFacts) {
    this.#holdMs = holdMs
    this.#facts = facts
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  begins(sinceMs: number): void {
    this.end()
    const controller = new AbortController()
    this.#controller = controller
    const over = () => controller.abort(new EffectTimeoutError({ ...this.#facts, holdMs: this.#holdMs }))
    const leftMs = sinceMs + this.#holdMs - monotonicMs()
    if (leftMs <= 0) over()
    else this.#stopTimer = startTimer(leftMs, over)
  }

  end(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
  }
}
