import { HoldfastError } from '../base/errors.ts'

/** What names an effect for people and for the provider. */
export interface EffectFacts {
  readonly effect: string
  readonly key: string
}

/**
 * Whether an effect took place is not known: a call of it was under way when its process died, or threw without saying.
 * It was not called again. In a job, the job is discarded with the reason `effect-uncertain` and waits for a decision:
 * `holdfast effects resolve`.
 */
export class EffectUncertainError extends HoldfastError {
  override readonly name = 'EffectUncertainError'
  readonly code = 'EFFECT_UNCERTAIN'
  readonly effect: string
  readonly key: string
  /** Empty where there are no tenants. */
  readonly tenant: string
  /** What the provider was given at the call in doubt: ask it by this. */
  readonly idempotencyKey: string
  readonly intendedAt: Date

  constructor(
    facts: EffectFacts & {
      readonly tenant: string
      readonly idempotencyKey: string
      readonly intendedAt: Date
    },
    options?: ErrorOptions,
  ) {
    super(
      `whether ${facts.effect} "${facts.key}" of ${facts.intendedAt.toISOString()} happened is not known; ` +
        'find out at the provider, then tell by "holdfast effects resolve"',
      options,
    )
    this.effect = facts.effect
    this.key = facts.key
    this.tenant = facts.tenant
    this.idempotencyKey = facts.idempotencyKey
    this.intendedAt = facts.intendedAt
  }
}

/** Another call of the same effect is under way and did not end in time. Nothing was called: try again later. */
export class EffectBusyError extends HoldfastError {
  override readonly name = 'EffectBusyError'
  readonly code = 'EFFECT_BUSY'
  readonly effect: string
  readonly key: string
  readonly waitedMs: number

  constructor(facts: EffectFacts & { readonly waitedMs: number }, options?: ErrorOptions) {
    super(
      `${facts.effect} "${facts.key}" is being called elsewhere and did not end within ${facts.waitedMs} ms; try again later`,
      options,
    )
    this.effect = facts.effect
    this.key = facts.key
    this.waitedMs = facts.waitedMs
  }
}

/** Reason of the signal of an effect outside jobs: its call took longer than it is held for, and others may take over. */
export class EffectTimeoutError extends HoldfastError {
  override readonly name = 'EffectTimeoutError'
  readonly code = 'EFFECT_TIMEOUT'
  readonly effect: string
  readonly key: string
  readonly holdMs: number

  constructor(facts: EffectFacts & { readonly holdMs: number }, options?: ErrorOptions) {
    super(
      `the call of ${facts.effect} "${facts.key}" did not end within ${facts.holdMs} ms; give it a longer "holdMs"`,
      options,
    )
    this.effect = facts.effect
    this.key = facts.key
    this.holdMs = facts.holdMs
  }
}

/**
 * The job was discarded because nobody knows whether an effect of it happened, and nobody has decided since: to run it
 * again would only ask again. Nothing was changed.
 */
export class EffectUndecidedError extends HoldfastError {
  override readonly name = 'EffectUndecidedError'
  readonly code = 'EFFECT_UNDECIDED'
  readonly jobId: string
  readonly effect: string
  readonly key: string
  readonly tenant: string

  constructor(
    facts: EffectFacts & { readonly jobId: string; readonly tenant: string },
    options?: ErrorOptions,
  ) {
    const { effect, key, tenant, jobId } = facts
    const named = `${asArgument(effect)} ${asArgument(key)}${tenant === '' ? '' : ` --tenant ${asArgument(tenant)}`}`
    super(
      `whether ${effect} "${key}" of job ${jobId} happened is not known; find out, then: ` +
        `holdfast effects resolve ${named} --happened (or --repeat) --reason "how you know"`,
      options,
    )
    this.jobId = jobId
    this.effect = effect
    this.key = key
    this.tenant = tenant
  }
}

/** As a shell takes it. */
function asArgument(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/**
 * The job is completed or decided about, its attempt over, or another `ctx.commit` under way: the context takes this no
 * more. Nothing was sent, or all of it rolled back.
 */
export class AttemptEndedError extends HoldfastError {
  override readonly name = 'AttemptEndedError'
  readonly code = 'ATTEMPT_ENDED'
  readonly jobId: string

  constructor(facts: { readonly jobId: string; readonly call: string }, options?: ErrorOptions) {
    super(
      `${facts.call} came after the end of its attempt at job ${facts.jobId}; let ctx.commit be the last thing a handler does`,
      options,
    )
    this.jobId = facts.jobId
  }
}

/** See {@link notHappened}. */
export class NotHappenedError extends Error {
  override readonly name = 'NotHappenedError'
}

/**
 * Says, thrown from the function of an effect, that the effect certainly did not take place: the provider refused it, or
 * was never reached. The effect stays open, and the next attempt calls it without asking anybody. `ctx.effect` throws
 * `error` itself.
 *
 * @example
 * await ctx.effect('call:bank', { key }, async ({ idempotencyKey }) => {
 *   const answer = await bank.charge(order, { idempotencyKey })
 *   if (answer.status === 'declined') throw notHappened(new PermanentError('the card was declined'))
 *   return answer.id
 * })
 */
export function notHappened(error: unknown): Error {
  return new NotHappenedError('the effect did not take place', { cause: error })
}
