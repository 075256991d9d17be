import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sleep } from '../../src/base/sleep.ts'
import type { App } from '../../src/index.ts'
import { appOver, note } from '../integration/homes.ts'
import type { OpenSubject, OwnTransaction, Subject } from './subjects/subject.ts'

/** Everything that quoting, placeholders or parsers of a library could spoil. */
const awkward = {
  quotes: `it's "quoted", \\'escaped\\', E'x', $$dollars$$, $tag$ ? $tag$`,
  placeholders: '? ?? \\? $1 $2::text :name @name %s {0} ${x}',
  comments: '-- not a comment /* nor this */ # ?',
  backslashes: 'C:\\temp\\new\\u0041 \\\\',
  unicode: 'Zoë 中文 🙂 e\u0301 \u2028 \u202E \uFEFF',
  controls: 'tab\t newline\n return\r nul-free \u0001',
  numbers: [0, -0.5, 0.1, 1e-7, 1e21, 9007199254740991, -9007199254740991, 1.7976931348623157e308, 5e-324],
  digits: '12345678901234567890.123',
  empties: [null, '', [], {}, false, 0],
  '': { 'a"b': { 'c\\d': ['$1'] } },
}

/** What the library's schema may be called. */
const oddSchema = `Odd "Schema"? ?? \\? :x %s it's -- é`

/** By the library's own means, or by statements where it has none. */
async function inSavepoint<T>(own: OwnTransaction, fn: (inner: OwnTransaction) => Promise<T>): Promise<T> {
  if (own.savepoint !== undefined) return await own.savepoint(fn)
  await own.query('savepoint part')
  try {
    return await fn(own)
  } catch (error) {
    await own.query('rollback to savepoint part')
    throw error
  }
}

/** The promises of `{ tx }`, the same for every driver and ORM. */
export function describeTransactions(subject: Subject): void {
  describe(`${subject.name}`, () => {
    let open: OpenSubject
    let app: App

    beforeAll(async () => {
      open = await subject.open()
      app = appOver(open.database)
      await open.sql('create table trail (step int primary key)')
    }, 60_000)

    afterAll(async () => {
      await app?.close()
      await open?.close()
    })

    /** Inputs of the jobs of one test, in the order they were enqueued. */
    const inputsOf = async (test: string): Promise<unknown[]> =>
      (
        await open.sql(
          `select input ->> 'n' as n from holdfast.job where input ->> 'test' = $1 order by id`,
          [test],
        )
      ).map(({ n }) => Number(n))
    const steps = async (): Promise<unknown[]> =>
      (await open.sql('select step from trail order by step')).map(({ step }) => step)

    it('commits with the transaction, and is not seen before', async () => {
      const answer = await open.transaction(async ({ tx, query }) => {
        await query('insert into trail values (1)')
        const stored = await app.enqueue(note, { test: 'commit', n: 1 }, { tx })
        // On PGlite there is only one connection, and it is in the transaction.
        if (typeof open.database === 'string') expect(await inputsOf('commit')).toEqual([])
        return stored
      })

      expect(answer).toEqual({ id: expect.stringMatching(/^\d+$/), status: 'created' })
      expect(await inputsOf('commit')).toEqual([1])
      expect(await steps()).toContain(1)
    })

    it('is gone when the transaction rolls back', async () => {
      const thrown = new Error('changed my mind')
      const running = open.transaction(async ({ tx, query }) => {
        await query('insert into trail values (2)')
        await app.enqueue(note, { test: 'rollback', n: 1 }, { tx })
        await app.enqueue(
          note,
          { test: 'rollback', n: 2 },
          { tx, uniqueKey: 'rollback', idempotencyKey: 'r' },
        )
        throw thrown
      })

      await expect(running).rejects.toBe(thrown)
      expect(await inputsOf('rollback')).toEqual([])
      expect(await steps()).not.toContain(2)
      const after = await app.enqueue(note, {}, { uniqueKey: 'rollback', idempotencyKey: 'r' })
      expect(after.status).toBe('created')
    })

    it('is gone when its savepoint rolls back, and only then', async () => {
      await open.transaction(async (own) => {
        const { tx } = own
        await app.enqueue(note, { test: 'savepoint', n: 1 }, { tx })
        const failing = inSavepoint(own, async (inner) => {
          await app.enqueue(note, { test: 'savepoint', n: 2 }, { tx: inner.tx })
          throw new Error('mine')
        })
        await expect(failing).rejects.toThrow('mine')
        await inSavepoint(own, async (inner) => {
          await app.enqueue(note, { test: 'savepoint', n: 3 }, { tx: inner.tx })
        })
        await app.enqueue(note, { test: 'savepoint', n: 4 }, { tx })
      })

      expect(await inputsOf('savepoint')).toEqual([1, 3, 4])
    })

    it('answers a taken key with the job that has it, and the transaction goes on', async () => {
      const held = await app.enqueue(note, { test: 'key', n: 1 }, { uniqueKey: 'key', idempotencyKey: 'i' })

      await open.transaction(async ({ tx, query }) => {
        await query('insert into trail values (10)')
        const again = await app.enqueue(note, { test: 'key', n: 2 }, { tx, uniqueKey: 'key' })
        expect(again).toEqual({ id: held.id, status: 'existing' })
        expect(await app.enqueue(note, { test: 'key', n: 1 }, { tx, idempotencyKey: 'i' })).toEqual(held)
        await query('insert into trail values (11)')
        await app.enqueue(note, { test: 'key', n: 3 }, { tx })
      })

      expect(await inputsOf('key')).toEqual([1, 3])
      expect(await steps()).toEqual(expect.arrayContaining([10, 11]))
    })

    it("goes on after a statement of the user's failed in a savepoint", async () => {
      await open.transaction(async (own) => {
        const { tx, query } = own
        await query('insert into trail values (20)')
        const failing = inSavepoint(own, async (inner) => {
          await app.enqueue(note, { test: 'failed', n: 1 }, { tx: inner.tx })
          await inner.query('insert into trail values (20)')
        })
        await expect(failing).rejects.toBeInstanceOf(Error)
        await app.enqueue(note, { test: 'failed', n: 2 }, { tx })
      })

      expect(await inputsOf('failed')).toEqual([2])
      expect(await steps()).toContain(20)
    })

    it('refuses an aborted transaction with an error of its own', async () => {
      const refused: unknown[] = []
      const running = open.transaction(async ({ tx, query }) => {
        await query('select 1 / 0').catch(() => {})
        await app
          .enqueue(note, { test: 'aborted', n: 1 }, { tx })
          .catch((error: unknown) => refused.push(error))
      })
      await running.catch(() => {})

      expect(refused).toEqual([expect.objectContaining({ code: 'TRANSACTION_ABORTED', changed: 'nothing' })])
      expect(await inputsOf('aborted')).toEqual([])
    })

    it('refuses what is no transaction, and says what to pass', async () => {
      for (const [what, { tx, says }] of Object.entries(open.mistakes)) {
        const refused = app.enqueue(note, { test: 'mistake', n: 1 }, { tx })
        await expect(refused, what).rejects.toMatchObject({
          code: 'TRANSACTION_REQUIRED',
          message: expect.stringMatching(says),
        })
      }
      expect(await inputsOf('mistake')).toEqual([])
    })

    it('refuses a transaction that has ended', async () => {
      const committed = await open.transaction(async ({ tx }) => [tx])
      const rolledBack: unknown[] = []
      await open
        .transaction(async ({ tx }) => {
          rolledBack.push(tx)
          throw new Error('mine')
        })
        .catch(() => {})

      for (const tx of [...committed, ...rolledBack]) {
        const refused = app.enqueue(note, { test: 'ended', n: 1 }, { tx })
        await expect(refused).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' })
      }
      expect(await inputsOf('ended')).toEqual([])
    })

    it('stores nothing outside the transaction, whenever an enqueue that nobody awaits is sent', async () => {
      const codes = new Set<unknown>()
      for (let round = 0; round < 60; round += 1) {
        let floating: Promise<void> | undefined
        const running = open.transaction(async ({ tx, query }) => {
          await query('select 1')
          floating = later(round)
            .then(async () => await app.enqueue(note, { test: 'floating', n: round }, { tx }))
            .then(
              () => {},
              (error: { readonly code?: unknown }) => void codes.add(error.code),
            )
          throw new Error('mine')
        })
        await running.catch(() => {})
        // Nothing of this round may meet the transaction of the next. postgres.js leaves some unanswered.
        await Promise.race([floating, sleep(50)])
      }

      expect(await inputsOf('floating')).toEqual([])
      expect([...codes].filter((code) => !String(code).startsWith('TRANSACTION_'))).toEqual([])
      expect(codes).toContain('TRANSACTION_REQUIRED')
    })

    it('stores every value as it is', async () => {
      const { id } = await open.transaction(async ({ tx }) => await app.enqueue(note, awkward, { tx }))
      const keyed = await open.transaction(
        async ({ tx }) => await app.enqueue(note, awkward, { tx, uniqueKey: `? $1 \\ 'ü' "🙂"` }),
      )

      const rows = await open.sql(
        'select input::text as input, unique_key from holdfast.job where id = any ($1::int8[]) order by id',
        [[id, keyed.id]],
      )
      const input = JSON.stringify(awkward)
      expect(rows).toEqual([
        { input, unique_key: null },
        { input, unique_key: `? $1 \\ 'ü' "🙂"` },
      ])
    })

    it('stores a thousand at once, and answers in their order', async () => {
      const jobs = Array.from({ length: 1000 }, (_, n) => ({ job: note, input: { test: 'many', n } }))
      const keyed = [3, 1, 3, 2].map((n) => ({ job: note, input: { test: 'few', n }, uniqueKey: `few ${n}` }))

      const [answers, few] = await open.transaction(async ({ tx }) => [
        await app.enqueueMany(jobs, { tx }),
        await app.enqueueMany(keyed, { tx }),
      ])

      const stored = await open.sql(
        `select id::text, (input ->> 'n')::int as n from holdfast.job where input ->> 'test' = 'many' order by n`,
      )
      expect(stored).toEqual(answers.map(({ id }, n) => ({ id, n })))
      expect(few.map(({ status }) => status)).toEqual(['created', 'created', 'existing', 'created'])
      expect(few[2]?.id).toBe(few[0]?.id)
    })

    it('gives ids beyond what JavaScript numbers hold whole', async () => {
      const [before] = await open.sql('select last_value::text as at from holdfast.job_seq')
      const start = 9_007_199_254_740_993n
      await open.sql(`select setval('holdfast.job_seq', $1)`, [String(start - 1n)])
      const end = (start / 1_000_000n) * 1_000_000n
      await open.sql('insert into holdfast.id_range (first_id, end_id) values ($1, $2)', [
        String(end - 1n),
        String(end),
      ])
      await open.sql('select holdfast.ensure_partitions()')

      const answers = await open.transaction(async ({ tx }) => [
        await app.enqueue(note, {}, { tx }),
        ...(await app.enqueueMany([{ job: note }, { job: note }], { tx })),
        await app.enqueue(note, {}, { tx, uniqueKey: 'beyond' }),
      ])

      expect(answers.map(({ id }) => BigInt(id) - start)).toEqual([0n, 1n, 2n, expect.any(BigInt)])
      await open.sql(`select setval('holdfast.job_seq', $1)`, [before?.['at']])
    })

    it('works in a schema of any name', async () => {
      const odd = appOver(open.database, { schema: oddSchema })
      try {
        await odd.migrate()
        const answers = await open.transaction(async ({ tx }) => [
          await odd.enqueue(note, 1, { tx }),
          ...(await odd.enqueueMany(
            [
              { job: note, input: 2 },
              { job: note, input: 3 },
            ],
            { tx },
          )),
          await odd.enqueue(note, 4, { tx, uniqueKey: 'k' }),
        ])

        const name = `"${oddSchema.replaceAll('"', '""')}"`
        const stored = await open.sql(`select id::text from ${name}.job order by id`)
        expect(stored).toEqual(answers.map(({ id }) => ({ id })))
      } finally {
        await odd.close()
      }
    })

    it('says that the tables are missing where they are', async () => {
      const nowhere = appOver(open.database, { schema: 'nowhere' })
      try {
        const running = open.transaction(async ({ tx }) => await nowhere.enqueue(note, 1, { tx }))
        await expect(running).rejects.toMatchObject({ code: 'SCHEMA_VERSION', schema: 'nowhere' })
      } finally {
        await nowhere.close()
      }
    })
  })
}

/** Comes back after a few turns: of microtasks, then of the event loop, then after some milliseconds. */
async function later(turns: number): Promise<void> {
  if (turns >= 45) await new Promise((resolve) => setTimeout(resolve, turns - 45))
  else if (turns >= 30)
    for (let i = 30; i <= turns; i += 1) await new Promise((resolve) => setImmediate(resolve))
  else for (let i = 0; i <= turns; i += 1) await Promise.resolve()
}
