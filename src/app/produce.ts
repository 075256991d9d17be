import { InvalidArgumentError, InvalidInputError } from '../base/errors.ts'
import { validate } from '../jobs/validate.ts'
import type { Producer } from '../producers/define-producer.ts'
import {
  type IntendedEnqueue,
  type OpenWork,
  ProducerTransaction,
} from '../producers/producer-transaction.ts'

/** How a producer is run. */
export interface ProduceOptions {
  /**
   * Your open transaction, as for `app.enqueue`, or the `tx` of another producer: the work commits or rolls back with
   * it. Default: a transaction of its own.
   */
  readonly tx?: unknown
  /**
   * True: rolls back, and tells what would have been enqueued. Not together with `tx`. Default: false.
   */
  readonly dryRun?: boolean | undefined
}

/** What a dry run tells. */
export interface DryRun<Result> {
  /** What `run` gave. */
  readonly result: Result
  /** What it would have enqueued, in order. */
  readonly enqueues: readonly IntendedEnqueue[]
}

export interface ProduceDependencies {
  readonly producers: ReadonlyMap<string, Producer>
  /** Runs `fn` in a transaction of its own; rolls back if it throws. */
  readonly begin: <T>(fn: (work: OpenWork) => Promise<T>) => Promise<T>
  /** Runs `fn` in the transaction that a caller passed. */
  readonly join: <T>(tx: unknown, fn: (work: OpenWork) => Promise<T>) => Promise<T>
}

/** Ends a transaction that must not commit. */
class RollBack extends Error {
  override readonly name = 'RollBack'
}

/** Runs a producer as {@link ProduceOptions} say: its result, or the report of a dry run. */
export async function produce(
  { producers, begin, join }: ProduceDependencies,
  call: { readonly producer: Producer; readonly input: unknown; readonly options: ProduceOptions },
): Promise<unknown> {
  const { producer } = call
  const { tx, dryRun = false } = call.options
  if (producer === undefined || producers.get(producer?.name) !== producer) {
    const problem = `"${producer?.name}" is not among the application's "producers"; list it in defineApp`
    throw new InvalidArgumentError({ field: 'producer', problem })
  }
  if (tx !== undefined && dryRun) {
    const problem = 'cannot be given together with tx: a dry run rolls back a transaction of its own'
    throw new InvalidArgumentError({ field: 'dryRun', problem })
  }
  const { value, issues } = await validate(producer.input, call.input)
  if (issues !== undefined) throw new InvalidInputError({ job: producer.name, issues, kind: 'producer' })
  if (dryRun) return await rehearse(begin, producer, value)
  const run = async (work: OpenWork) => await producer.run(new ProducerTransaction(work, producer), value)
  return tx === undefined ? await begin(run) : await join(tx, run)
}

async function rehearse(
  begin: ProduceDependencies['begin'],
  producer: Producer,
  value: unknown,
): Promise<DryRun<unknown>> {
  const enqueues: IntendedEnqueue[] = []
  let result: unknown
  const rollBack = new RollBack('the dry run is over')
  try {
    await begin(async (work) => {
      const tx = new ProducerTransaction(work, producer, (enqueue) => enqueues.push(enqueue))
      result = await producer.run(tx, value)
      throw rollBack
    })
  } catch (error) {
    if (error !== rollBack) throw error
  }
  return { result, enqueues }
}
