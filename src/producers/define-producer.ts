import type { StandardSchemaV1 } from '@standard-schema/spec'
import { checkName } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { checkEffects, type EffectName, type InsideEffect, isOutside } from '../effects/effect-name.ts'
import { requireSchema } from '../jobs/validate.ts'
import type { ProducerTransaction } from './producer-transaction.ts'

/** What {@link defineProducer} takes. */
export interface ProducerOptions<
  Name extends string,
  Input extends StandardSchemaV1,
  Effects extends readonly InsideEffect[],
  Result,
> {
  /** Name of what it does, such as `'sales.confirmOrder'`: 1 to 255 bytes. For people, the manifest and errors. */
  readonly name: Name
  /** Standard Schema of the input; checked before the transaction begins. `run` gets its output. */
  readonly input: Input
  /**
   * What `run` does, such as `['write:sales.order', 'enqueue:sales.sendConfirmation']`. Only effects of the database: what
   * is outside does not roll back, and belongs into a job. `tx` refuses to enqueue what is not declared here; reads
   * and writes are your word, for the manifest.
   */
  readonly effects: Effects
  /** Does the work in one transaction. What it throws rolls all of it back. */
  run(
    tx: ProducerTransaction<Effects[number]>,
    input: StandardSchemaV1.InferOutput<Input>,
  ): Result | Promise<Result>
}

/** A producer as an application knows it. Made by {@link defineProducer}; frozen. */
export interface Producer<
  Name extends string = string,
  Input extends StandardSchemaV1 = StandardSchemaV1,
  Result = unknown,
> {
  readonly name: Name
  readonly input: Input
  readonly effects: readonly EffectName[]
  // A method, so that a producer of a certain input is a Producer of any.
  run(tx: ProducerTransaction, input: unknown): Result | Promise<Result>
}

/** What a caller gives to run `P`. */
export type ProducerInput<P extends Producer> = StandardSchemaV1.InferInput<P['input']>
/** What `run` of `P` gives. */
export type ProducerResult<P extends Producer> =
  P extends Producer<string, StandardSchemaV1, infer R> ? R : never

/**
 * Defines a producer: a change of your data and the jobs that follow from it, in one transaction, with its effects
 * declared. List it in `defineApp({ producers })` and run it by `app.produce`.
 *
 * @returns The definition, frozen. Nothing is stored.
 * @throws {InvalidArgumentError} An option is missing or of the wrong type, or an effect is outside the database.
 *   Names the field.
 *
 * @example
 * const confirmOrder = defineProducer({
 *   name: 'sales.confirmOrder',
 *   input: z.object({ orderId: z.string() }),
 *   effects: ['write:sales.order', 'enqueue:sales.sendConfirmation'],
 *   async run(tx, { orderId }) {
 *     await tx.query('update orders set status = $1 where id = $2', ['confirmed', orderId])
 *     await tx.enqueue(sendConfirmation, { orderId }, { uniqueKey: orderId })
 *   },
 * })
 */
export function defineProducer<
  const Name extends string,
  Input extends StandardSchemaV1,
  const Effects extends readonly InsideEffect[],
  Result,
>(options: ProducerOptions<Name, Input, Effects, Result>): Producer<Name, Input, Result> {
  const name = checkName('name', options.name) as Name
  requireSchema('input', options.input)
  if (typeof options.run !== 'function') {
    throw new InvalidArgumentError({ field: 'run', problem: `must be a function for producer "${name}"` })
  }
  if ((options.effects as unknown) === undefined) {
    throw new InvalidArgumentError({ field: 'effects', problem: `must be declared for producer "${name}"` })
  }
  const effects = checkEffects('effects', options.effects)
  const outside = effects.find(isOutside)
  if (outside !== undefined) {
    throw new InvalidArgumentError({
      field: 'effects',
      problem: `must not have "${outside}": it would not roll back with the transaction; let a job do it`,
    })
  }
  return Object.freeze({
    name,
    input: options.input,
    effects,
    run: (tx: ProducerTransaction, input: unknown) =>
      options.run(tx as ProducerTransaction<Effects[number]>, input as StandardSchemaV1.InferOutput<Input>),
  })
}
