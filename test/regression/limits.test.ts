import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type AppOptions,
  defineJob,
  InvalidArgumentError,
  type JobOptions,
  limits,
  type WorkerOptions,
} from '../../src/index.ts'
import type { Job } from '../../src/jobs/define-job.ts'
import {
  anything,
  appOver,
  describeEachHome,
  doorsOf,
  enqueueBySql,
  type Home,
  note,
  openPgHome,
  runInHandler,
} from '../integration/homes.ts'
import { startProxy } from '../support/proxy.ts'

/** What a number may be and is not: row 7. */
const numbers: readonly unknown[] = [
  0,
  -1,
  1.5,
  Number.NaN,
  '3',
  Number.POSITIVE_INFINITY,
  2 ** 31,
  null,
  5n,
  true,
  {},
  -0,
]

/** What the documentation says of `value`. */
function isGood(
  limit: { readonly min: number; readonly max: number; readonly integer: boolean },
  value: unknown,
): boolean {
  return (
    typeof value === 'number' &&
    value >= limit.min &&
    value <= limit.max &&
    (!limit.integer || Number.isInteger(value))
  )
}

const show = (value: unknown) =>
  typeof value === 'bigint'
    ? `${value}n`
    : typeof value === 'string'
      ? `"${value}"`
      : Object.is(value, -0)
        ? '-0'
        : String(value)

/** Row 7: the same verdict by every door. */
describeEachHome('a number at enqueue', ({ kind, open }) => {
  let home: Home
  const options = ['priority', 'maxAttempts', 'delayMs'] as const

  beforeAll(async () => {
    home = await open()
    await home.work()
  })

  afterAll(async () => {
    await home[Symbol.asyncDispose]()
  })

  describe.each(doorsOf(kind))('through $name', (door) => {
    it.each(options)('%s keeps to its documented range', async (option) => {
      for (const value of numbers) {
        const input = `${door.name} ${option} ${show(value)}`
        const call = door.enqueue(home, note as unknown as Job, input, { delayMs: 1e9, [option]: value })
        if (isGood(limits[option], value)) {
          const { id } = await call
          if (option !== 'delayMs')
            expect(await home.app.job(id).get(), input).toMatchObject({ [option]: Math.abs(value as number) })
        } else {
          await expect(call, input).rejects.toThrow(InvalidArgumentError)
          await expect(call).rejects.toMatchObject({
            field: expect.stringMatching(new RegExp(`\\.${option}$`)),
          })
          expect(
            await home.sql('select from holdfast.job where input::text = $1', [JSON.stringify(input)]),
          ).toEqual([])
        }
      }
    })

    it('runAt is a Date that PostgreSQL can hold', async () => {
      const bad = [new Date(Number.NaN), new Date(8.64e15), new Date(-8.64e15), 0, '2026-01-01', null, {}]
      for (const runAt of bad) {
        await expect(door.enqueue(home, note as unknown as Job, 'bad date', { runAt })).rejects.toMatchObject(
          {
            code: 'INVALID_ARGUMENT',
            field: expect.stringMatching(/\.runAt$/),
          },
        )
      }
      expect(await home.sql(`select from holdfast.job where input::text = '"bad date"'`)).toEqual([])
      for (const text of [
        '9999-12-31T23:59:59.999Z',
        '2026-10-25T00:30:00.001Z',
        '2999-02-28T23:59:59.999Z',
      ]) {
        const { id } = await door.enqueue(home, note as unknown as Job, text, { runAt: new Date(text) })
        expect((await home.app.job(id).get())?.runAt?.toISOString()).toBe(text)
      }
      for (const ms of [-210_866_803_200_000, -62_135_596_800_001, -1]) {
        const { id } = await door.enqueue(home, note as unknown as Job, 'past', { runAt: new Date(ms) })
        expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
        expect(
          (
            await home.sql<{ ms: string }>(
              'select (extract(epoch from run_at) * 1000)::int8::text as ms from holdfast.job where id = $1',
              [id],
            )
          )[0]?.ms,
        ).toBe(String(ms))
      }
    })
  })

  it.each(options)('%s by SQL keeps to the same range', async (option) => {
    const parameter = option.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    for (const value of [
      '0',
      '-1',
      '1.5',
      'NaN',
      'Infinity',
      '-Infinity',
      '2147483648',
      '9',
      '10',
      '1000',
      '1001',
      '3155760000000',
      '3155760000001',
      '1e300',
    ]) {
      const input = JSON.stringify(`sql ${option} ${value}`)
      const call = enqueueBySql(home.sql, note.name, input, {
        [parameter]: value,
        ...(option === 'delayMs' ? {} : { delay_ms: '1000000' }),
      })
      if (isGood(limits[option], Number(value))) expect(await call).toMatchObject({ status: 'created' })
      else {
        // What is no integer at all is refused by PostgreSQL, in its own words.
        await expect(call, `${option} ${value}`).rejects.toMatchObject({
          code: expect.stringMatching(/^(HF001|22P02|22003)$/),
        })
        expect(await home.sql('select from holdfast.job where input::text = $1', [input])).toEqual([])
      }
    }
  })

  it('inMs of snooze and retry keeps to its range, and the attempt decides nothing by a bad one', async () => {
    for (const value of numbers) {
      const kinds = ['snooze', 'retry'] as const
      for (const method of kinds) {
        if (isGood(limits.delayMs, value)) continue
        const call = runInHandler(home, async (ctx) => ctx[method]({ inMs: value as number }))
        await expect(call, `${method} ${show(value)}`).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
          field: 'inMs',
        })
      }
    }
  })
})

type NumericJobOption = 'maxAttempts' | 'priority' | 'timeoutMs' | 'abortGraceMs'
type NumericAppOption = 'leaseMs' | 'maxPollMs' | 'shutdownMs' | 'shutdownGraceMs'

describe('a number of a definition', () => {
  const job = (more: object) => () =>
    defineJob({
      name: 'x',
      input: anything(),
      idempotent: true,
      handler: () => {},
      ...more,
    } as unknown as JobOptions<'x', ReturnType<typeof anything>, never>)

  it.each(['maxAttempts', 'priority', 'timeoutMs', 'abortGraceMs'] satisfies NumericJobOption[])(
    '%s of a job keeps to its range',
    (option) => {
      for (const value of numbers) {
        if (isGood(limits[option], value))
          expect(job({ [option]: value })()[option]).toBe(Math.abs(value as number))
        else
          expect(job({ [option]: value }), `${option} ${show(value)}`).toThrow(
            expect.objectContaining({ code: 'INVALID_ARGUMENT', field: option }),
          )
      }
    },
  )

  it.each([
    ['baseMs', limits.backoffBaseMs],
    ['factor', limits.backoffFactor],
    ['capMs', limits.backoffCapMs],
  ] as const)('%s of a retry policy keeps to its range', (option, limit) => {
    for (const value of numbers) {
      const define = job({ retry: { type: 'exponential', [option]: value } })
      if (isGood(limit, value)) expect(define).not.toThrow()
      else
        expect(define, `${option} ${show(value)}`).toThrow(
          expect.objectContaining({ field: `retry.${option}` }),
        )
    }
  })

  it('the delay of a fixed policy keeps to its range and has no default', () => {
    for (const value of [...numbers, undefined]) {
      const define = job({ retry: { type: 'fixed', delayMs: value } })
      if (isGood(limits.backoffCapMs, value)) expect(define).not.toThrow()
      else expect(define, show(value)).toThrow(expect.objectContaining({ field: 'retry.delayMs' }))
    }
    for (const retry of [null, 'fixed', 3, {}, { type: 'linear' }, { type: 'exponential', jitter: 'some' }]) {
      expect(job({ retry })).toThrow(InvalidArgumentError)
    }
  })

  it.each(['leaseMs', 'maxPollMs', 'shutdownMs', 'shutdownGraceMs'] satisfies NumericAppOption[])(
    '%s of an application keeps to its range',
    (option) => {
      for (const value of numbers) {
        const define = () => appOver('pglite:memory:', { [option]: value } as Partial<AppOptions>)
        if (isGood(limits[option], value))
          expect(define().composition[option]).toBe(Math.abs(value as number))
        else
          expect(define, `${option} ${show(value)}`).toThrow(
            expect.objectContaining({ code: 'COMPOSITION', message: expect.stringContaining(option) }),
          )
      }
    },
  )

  it('concurrency of a queue keeps to its range, of an application and of a worker', () => {
    for (const value of numbers) {
      const define = () => appOver('pglite:memory:', { queues: { mail: { concurrency: value as number } } })
      const work = () =>
        appOver('pglite:memory:').worker({ concurrency: { mail: value as number } } as WorkerOptions)
      if (isGood(limits.concurrency, value)) {
        expect(define).not.toThrow()
        expect(work).not.toThrow()
      } else {
        expect(define, show(value)).toThrow(/queues\.mail\.concurrency/)
        // Null stands for the application's own, as undefined does.
        if (value !== null)
          expect(work, show(value)).toThrow(expect.objectContaining({ field: 'concurrency.mail' }))
      }
    }
  })

  it('maxConnections keeps to its range', () => {
    for (const value of numbers) {
      const define = () => appOver('postgres://u@127.0.0.1:1/db', { maxConnections: value as number })
      if (isGood({ min: 1, max: 1000, integer: true }, value)) expect(define).not.toThrow()
      else expect(define, show(value)).toThrow(expect.objectContaining({ field: 'maxConnections' }))
    }
  })

  it('timeoutMs of wait keeps to its range', async () => {
    const app = appOver('pglite:memory:')
    for (const value of numbers) {
      if (isGood({ ...limits.timeoutMs, min: 0 }, value)) continue
      await expect(app.job('1').wait({ timeoutMs: value as number }), show(value)).rejects.toMatchObject({
        field: 'timeoutMs',
      })
    }
  })

  it('a bad number that stands in the database stops no other job', async () => {
    await using home = await openPgHome()
    const wrong = await home.app.enqueueMany(Array.from({ length: 3 }, () => ({ job: note, input: 'odd' })))
    await home.sql(`update holdfast.job set max_attempts = -5, priority = 0 where id = $1`, [wrong[0]?.id])
    await home.sql(`update holdfast.ready set attempts = 32000 where job_id = $1`, [wrong[1]?.id])
    await home
      .sql(`update holdfast.job set enqueued_at = 'infinity' where id = $1`, [wrong[2]?.id])
      .catch(() => {})
    const fine = await home.app.enqueue(note, 'fine')
    await home.work()
    expect(await home.app.job(fine.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  })
})

/** Row 8: waits above 2^31 - 1 ms. */
describe('a wait longer than a timer can hold', () => {
  it('neither runs a job early nor spins', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    const lazy = defineJob({
      name: 'lazy',
      input: anything(),
      idempotent: true,
      timeoutMs: limits.timeoutMs.max,
      handler: (ctx) => ctx.signal.aborted,
    })
    const options = { jobs: [lazy], maxPollMs: limits.maxPollMs.max, leaseMs: limits.leaseMs.max }
    await using home = await openPgHome(options)
    await using proxy = await startProxy(home.url)
    const worker = appOver(proxy.url(), options)
    try {
      const month = 2_592_000_000
      const far = await home.app.enqueueMany(
        [
          { delayMs: month },
          { runAt: new Date(Date.now() + month) },
          { delayMs: limits.delayMs.max },
          { runAt: new Date('9999-12-31T23:59:59.999Z') },
        ].map((due) => ({ job: note, input: 1, ...due })),
      )
      await worker.worker().start()
      const { id } = await home.app.enqueue(lazy, 1)
      expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
        state: 'completed',
        result: false,
      })

      const before = proxy.counts.statements
      const signal = AbortSignal.timeout(2000)
      expect(
        await home.app.job(far[0]?.id ?? '').wait({ timeoutMs: limits.timeoutMs.max, signal }),
      ).toBeUndefined()

      expect(proxy.counts.statements - before).toBeLessThan(10)
      for (const job of far) {
        expect(await home.app.job(job.id).get()).toMatchObject({ state: 'scheduled', attempts: 0 })
      }
      expect(warnings.filter(({ name }) => name === 'TimeoutOverflowWarning')).toEqual([])
    } finally {
      await worker.close()
      process.off('warning', onWarning)
    }
  })
})

/** Row 9, through the SQL path: the number of attempts is set by SQL, and the job fails once. */
describeEachHome('backoff', ({ open }) => {
  const retry = { type: 'exponential', baseMs: 1000, factor: 2, capMs: 3_600_000, jitter: 'none' } as const
  const failing = defineJob({
    name: 'failing',
    input: anything(),
    idempotent: true,
    maxAttempts: 1000,
    retry,
    handler: () => {
      throw new Error('no')
    },
  })
  const jittery = defineJob({
    name: 'jittery',
    input: anything(),
    idempotent: true,
    maxAttempts: 1000,
    retry: { ...retry, jitter: 'full' },
    handler: () => {
      throw new Error('no')
    },
  })

  it('waits the base first, never less later, and at most the cap, whatever the attempt', async () => {
    await using home = await open({ jobs: [failing, jittery], maxPollMs: 3_600_000 })
    const attempts = [1, 2, 3, 10, 31, 32, 63, 64, 999]
    const jobs = await home.app.enqueueMany(
      [failing, jittery].flatMap((job) => attempts.map(() => ({ job, input: 1 }))),
    )
    for (const [i, { id }] of jobs.entries()) {
      await home.sql('update holdfast.ready set attempts = $1 where job_id = $2', [
        (attempts[i % attempts.length] as number) - 1,
        id,
      ])
    }
    // What was scheduled, also of a job that is due again, and gone from there, before anybody looks.
    await home.sql('create table put_off (job_id int8, run_at timestamptz, attempts int)')
    await home.sql(`create function note_put_off() returns trigger language plpgsql as $$ begin
      insert into public.put_off values (new.job_id, new.run_at, new.attempts); return new; end $$`)
    await home.sql(
      'create trigger note after insert on holdfast.scheduled for each row execute function note_put_off()',
    )
    const failed = new Set<string>()
    const all = new Promise<void>((resolve) => {
      home.app.events.on('attempt.failed', ({ jobId }) => {
        if (failed.add(jobId).size === jobs.length) resolve()
      })
    })
    const before = Date.now()
    await home.work()
    await all
    const spentMs = Date.now() - before

    const rows = await home.sql<{ id: string; ms: string; attempts: number }>(
      `select distinct on (p.job_id) p.job_id::text as id,
         round(extract(epoch from p.run_at - a.ended_at) * 1000)::int8::text as ms, p.attempts
       from put_off p join holdfast.attempt a using (job_id) order by p.job_id, p.run_at, a.ended_at`,
    )
    const waits = jobs.map(({ id }) => Number(rows.find((row) => row.id === id)?.ms))
    expect(rows).toHaveLength(jobs.length)
    const plain = waits.slice(0, attempts.length)
    const expected = attempts.map((attempt) => Math.min(3_600_000, 1000 * 2 ** (attempt - 1)))
    for (const [i, wait] of plain.entries())
      expect(Math.abs(wait - (expected[i] as number)), `attempt ${attempts[i]}`).toBeLessThanOrEqual(
        spentMs + 50,
      )
    for (const [i, wait] of waits.slice(attempts.length).entries()) {
      expect(wait).toBeGreaterThanOrEqual(-1)
      expect(wait).toBeLessThanOrEqual((expected[i] as number) + 50)
    }
  })
})

/** LIM-2. */
describeEachHome('an id beyond what JavaScript numbers hold', ({ open }) => {
  it('goes whole through enqueue, claim, settle, cancel and back', async () => {
    await using home = await open()
    const start = 9_007_199_254_740_993n
    await home.sql(`select setval('holdfast.job_seq', $1)`, [String(start)])
    await home.sql(`select setval('holdfast.fencing_token_seq', $1)`, [String(start)])
    const round = (start / 1_000_000n) * 1_000_000n
    await home.sql(`insert into holdfast.id_range (first_id, end_id) values ($1, $2)`, [
      String(round - 1n),
      String(round),
    ])
    await home.sql(`select holdfast.ensure_partitions()`)

    const answers = await home.app.enqueueMany([
      { job: note, input: 1 },
      { job: note, input: 2, uniqueKey: 'k' },
      { job: note, input: 3, delayMs: 1e6 },
    ])
    expect(answers.map(({ id }) => BigInt(id) > start)).toEqual([true, true, true])
    await home.work()
    for (const { id } of answers.slice(0, 2))
      expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
    expect(await home.app.job(answers[2]?.id ?? '').cancel()).toEqual({ status: 'cancelled' })
    expect(
      (await home.sql('select job_id::text from holdfast.outcome order by 1')).map((row) => row['job_id']),
    ).toEqual(answers.map(({ id }) => id).toSorted())
    const [top] = await home.sql<{ token: string }>('select max(token)::text as token from holdfast.outcome')
    expect(BigInt(top?.token ?? 0) > start).toBe(true)
  })
})
