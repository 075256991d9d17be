import { checkInstant, checkKey, checkName, checkNumber } from '../base/check.ts'
import { InvalidArgumentError, InvalidInputError, UnknownJobError } from '../base/errors.ts'
import { toStorableJson } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { type Database, runOne } from '../driver/operation.ts'
import { Coalescer } from './coalescer.ts'
import type { AnyJob } from './define-job.ts'
import type { EnqueueAnswer, EnqueueOptions } from './enqueue-options.ts'
import { enqueueAlikeJobs } from './sql/enqueue-alike-jobs.ts'
import { enqueueJobs } from './sql/enqueue-jobs.ts'
import { enqueueKeyedJobs } from './sql/enqueue-keyed-jobs.ts'
import { enqueueOneJob, type OneJob } from './sql/enqueue-one-job.ts'
import { type Validation, validate } from './validate.ts'

/** One job to enqueue, as `enqueueMany` takes it. */
export interface JobToEnqueue extends Omit<EnqueueOptions, 'tx'> {
  readonly job: AnyJob
  readonly input?: unknown
}

export interface EnqueuerDependencies {
  /** The application's own connections. */
  readonly database: Database
  /** Turns what a caller passed as `tx` into something to run statements on. */
  readonly databaseOf: (tx: unknown) => Database
  /** Refuses a call without `tx` from inside a transaction of ours. */
  readonly requireOutside: () => void
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly queues: ReadonlySet<string>
  /** Told of every id that was stored: partitions are made ahead of need by whoever comes first. */
  readonly onStored: (lastId: string, items: readonly Item[]) => void
}

/** A checked job, ready to be sent. */
export interface Item {
  readonly queue: string
  readonly keyed: boolean
  /** All but the input, as the members of a JSON object without its braces; shared by jobs without options. */
  readonly head: string
  /** The same as columns, for a job that is due at once and carries no key. */
  readonly columns: Omit<OneJob, 'input'> | undefined
  /** JSON text. */
  readonly input: string
}

type Head = Omit<Item, 'input'>

/**
 * Enqueues by every door: everything is checked before anything is sent, then one statement stores all.
 *
 * Calls without `tx` and without keys that come while a statement is under way share the next one. Keyed ones go
 * alone: a key held by an open transaction makes them wait, and nobody else should.
 */
export class Enqueuer {
  readonly #deps: EnqueuerDependencies
  readonly #coalescer: Coalescer<Item, string>
  /** The part of an item's JSON that is the same for every enqueue of a job without options. */
  readonly #heads = new WeakMap<AnyJob, Head>()

  constructor(deps: EnqueuerDependencies) {
    this.#deps = deps
    this.#coalescer = new Coalescer(async (items) => await this.#store(deps.database, items), {
      maxItems: 1000,
      sizeOf: (item) => item.head.length + item.input.length,
      maxSize: 8 * 1024 * 1024,
    })
  }

  /** Ends when no statement of this enqueuer is under way. */
  idle(): Promise<void> {
    return this.#coalescer.idle()
  }

  async enqueue(job: AnyJob, input: unknown, options: EnqueueOptions = {}): Promise<EnqueueAnswer> {
    checkObject('options', options)
    const item = await this.#check(job, input, options, 'options')
    if (options.tx !== undefined) {
      const [answer] = await this.#storeAnswers(this.#deps.databaseOf(options.tx), [item])
      return answer as EnqueueAnswer
    }
    this.#deps.requireOutside()
    if (item.keyed) {
      const [answer] = await this.#storeAnswers(this.#deps.database, [item])
      return answer as EnqueueAnswer
    }
    return { id: await this.#coalescer.add(item), status: 'created' }
  }

  async enqueueMany(
    jobs: readonly JobToEnqueue[],
    options: Pick<EnqueueOptions, 'tx'> = {},
  ): Promise<readonly EnqueueAnswer[]> {
    if (!Array.isArray(jobs)) {
      throw new InvalidArgumentError({ field: 'jobs', problem: 'must be an array of { job, input, … }' })
    }
    checkObject('options', options)
    checkNumber('jobs.length', jobs.length, limits.bulkCount)
    const items: Item[] = []
    for (let index = 0; index < jobs.length; index += 1) {
      const given = checkObject(index, jobs[index])
      const item = this.#check(given.job, given.input, given, index)
      items.push(item instanceof Promise ? await item : item)
    }
    const database = options.tx === undefined ? this.#deps.database : this.#deps.databaseOf(options.tx)
    if (options.tx === undefined) this.#deps.requireOutside()
    return items.length === 0 ? [] : await this.#storeAnswers(database, items)
  }

  async #storeAnswers(database: Database, items: readonly Item[]): Promise<readonly EnqueueAnswer[]> {
    if (items.some((item) => item.keyed)) {
      const { answers } = await runOne(database, enqueueKeyedJobs, { items: listOf(items) })
      const parsed = (JSON.parse(answers) as [string, EnqueueAnswer['status']][]).map(([id, status]) => ({
        id,
        status,
      }))
      const created = items.filter((_, index) => parsed[index]?.status === 'created')
      this.#deps.onStored(parsed.at(-1)?.id ?? '0', database === this.#deps.database ? created : [])
      return parsed
    }
    return (await this.#store(database, items)).map((id) => ({ id, status: 'created' as const }))
  }

  async #store(database: Database, items: readonly Item[]): Promise<readonly string[]> {
    const ids = await storeItems(database, items)
    this.#deps.onStored(ids.at(-1) ?? '0', database === this.#deps.database ? items : [])
    return ids
  }

  /** `at` is what the options are in errors: a name, or the index in a bulk call. A promise only for an async schema. */
  #check(job: AnyJob, input: unknown, options: EnqueueOptions, at: At): Item | Promise<Item> {
    if (typeof job !== 'object' || job === null || this.#deps.jobs.get(job.name) !== job) {
      throw new UnknownJobError({ jobName: String(job?.name) })
    }
    const validation = validate(job.input, input)
    const finish = ({ issues }: Validation): Item => {
      if (issues !== undefined) throw new InvalidInputError({ job: job.name, issues })
      const json = toStorableJson(input, { field: 'input', maxBytes: limits.inputBytes.default })
      const { queue, keyed, head, columns } = this.#headOf(job, options, at)
      return { queue, keyed, head, columns, input: json }
    }
    return validation instanceof Promise ? validation.then(finish) : finish(validation)
  }

  #headOf(job: AnyJob, options: EnqueueOptions, at: At): Head {
    if (!hasNone(options)) return this.#writeHead(job, options, at)
    let head = this.#heads.get(job)
    if (head === undefined) {
      head = this.#writeHead(job, {}, at)
      this.#heads.set(job, head)
    }
    return head
  }

  #writeHead(job: AnyJob, options: EnqueueOptions, at: At): Head {
    const field = (name: string) => `${nameOf(at)}.${name}`
    const queue = options.queue === undefined ? job.queue : checkName(field('queue'), options.queue)
    if (!this.#deps.queues.has(queue)) {
      throw new InvalidArgumentError({
        field: field('queue'),
        problem: `is "${queue}", which the application does not configure under "queues"`,
      })
    }
    if (options.runAt !== undefined && options.delayMs !== undefined) {
      throw new InvalidArgumentError({
        field: field('delayMs'),
        problem: 'cannot be given together with runAt',
      })
    }
    const runAt = options.runAt === undefined ? undefined : checkInstant(field('runAt'), options.runAt)
    const uniqueKey = checkKey(field('uniqueKey'), options.uniqueKey)
    const idempotencyKey = checkKey(field('idempotencyKey'), options.idempotencyKey)
    const context = contextJson(field('context'), options.context)
    const priority =
      options.priority === undefined
        ? job.priority
        : checkNumber(field('priority'), options.priority, limits.priority)
    const maxAttempts =
      options.maxAttempts === undefined
        ? job.maxAttempts
        : checkNumber(field('maxAttempts'), options.maxAttempts, limits.maxAttempts)
    const delayMs =
      options.delayMs === undefined
        ? undefined
        : checkNumber(field('delayMs'), options.delayMs, limits.delayMs)
    const keyed = uniqueKey !== undefined || idempotencyKey !== undefined
    const json = JSON.stringify({
      n: job.name,
      q: queue,
      p: priority,
      m: maxAttempts,
      at: runAt?.getTime(),
      in: delayMs,
      u: uniqueKey,
      k: idempotencyKey,
      e: idempotencyKey === undefined ? undefined : limits.idempotencyHours.default * 3_600_000,
      c: job.contract,
    })
    return {
      queue,
      keyed,
      columns:
        keyed || runAt !== undefined || delayMs !== undefined
          ? undefined
          : {
              name: job.name,
              queue,
              priority,
              maxAttempts,
              contract: job.contract ?? null,
              context: context ?? null,
            },
      head: json.slice(1, -1) + (context === undefined ? '' : `,"x":${context}`),
    }
  }
}

function checkObject<T extends object>(at: At, value: T | undefined): T {
  if (typeof value === 'object' && value !== null) return value
  throw new InvalidArgumentError({ field: nameOf(at), problem: 'must be an object' })
}

/** The context as JSON; `undefined` for none. */
function contextJson(field: string, context: unknown): string | undefined {
  if (context === undefined || context === null) return undefined
  const json = toStorableJson(context, { field, maxBytes: limits.contextBytes.default })
  if (!json.startsWith('{')) throw new InvalidArgumentError({ field, problem: 'must be an object' })
  return json
}

/** What is not an option of the enqueue, in the objects that hold options. */
const NOT_OPTIONS = new Set(['tx', 'job', 'input'])

function hasNone(options: EnqueueOptions): boolean {
  for (const name in options) {
    if (!NOT_OPTIONS.has(name) && options[name as keyof EnqueueOptions] !== undefined) return false
  }
  return true
}

/** The place of options in errors: a name, or an index in a bulk call. */
type At = string | number

function nameOf(at: At): string {
  return typeof at === 'number' ? `jobs[${at}]` : at
}

function listOf(items: readonly Item[]): string {
  return `[${items.map(({ head, input }) => `{${head},"i":${input}}`).join(',')}]`
}

/** By the quicker statement where that can be. */
async function storeItems(database: Database, items: readonly Item[]): Promise<readonly string[]> {
  const [first] = items
  if (items.length === 1 && first?.columns !== undefined && database.queryable.keepsStatements) {
    const one = { ...first.columns, input: first.input }
    return [(await runOne({ ...database, prepare: true }, enqueueOneJob, one)).id]
  }
  const head = first?.head
  if (items.length > 1 && items.every((item) => item.head === head)) {
    const inputs = `[${items.map(({ input }) => input).join(',')}]`
    return (await runOne(database, enqueueAlikeJobs, { head: `{${head}}`, inputs })).ids
  }
  const { ids } = await runOne(database, enqueueJobs, { items: listOf(items) })
  return JSON.parse(ids) as string[]
}
