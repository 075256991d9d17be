import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp, defineJob } from '../../src/index.ts'
import { anything } from '../faults/handlers.ts'
import { describeEachApp, type EachApp } from '../integration/effects/each-app.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

/** Row 61. */
describeEachApp('a script that fails half-way', ({ open }) => {
  let opened: EachApp
  let app: App
  beforeAll(async () => {
    opened = await open({ worker: false, jobs: [] })
    app = opened.app
    await app.script("set a 'old' set b 'old' set c 'old'")
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  const logged = async () => await opened.sql('select place from holdfast.key_change')

  it.each([
    ['a comparison', 'if "x" > 1 then set c 1 end', { reason: 'operand-type', line: 3 }],
    ['a type', 'set c [1]', { reason: 'array-not-storable', line: 3 }],
    ['a throw', 'throw "stop"', { text: 'stop', line: 3 }],
    ['its timeout', 'sleep 5000', { reason: 'timeout', line: 3 }],
    ['an index', 'return [1][1]', { reason: 'bad-index', line: 3 }],
    ['a rollback', 'rollback', { reason: 'rollback', line: 3 }],
  ])(
    'by %s leaves values, revisions and the log of changes as they were, and names the line',
    async (_, step, facts) => {
      const before = await logged()
      const script = `set a 'new'\nset b 'new' set d 'new' eset e 'new' delete a\n${step}\nset c 'new'`
      await expect(app.script(script, {}, { timeoutMs: 2000 })).rejects.toMatchObject(facts)
      for (const key of ['a', 'b', 'c']) {
        const answer = await app.script('get @key', { key })
        expect([answer.text(), answer.revision]).toEqual(['old', 0n])
      }
      for (const script of ['exists d', 'eexists e'])
        expect(await app.script(script)).toMatchObject({ type: 'doesnotexist' })
      expect(await logged()).toEqual(before)
    },
  )
})

/** Row 62. */
describe('a script that PostgreSQL ends for the sake of another transaction', () => {
  let db: TestDatabase
  let app: App
  const job = defineJob({ name: 'job', input: anything<null>(), idempotent: true, handler: () => null })
  beforeAll(async () => {
    db = await createDatabase()
    // PostgreSQL looks once, so long after the wait began: the rival has to be in its own wait by then.
    await db.sql(`alter database ${db.name} set deadlock_timeout = '600ms'`)
    app = defineApp({ name: 'test', database: db.url, jobs: [job] })
    await app.migrate()
  })
  afterAll(async () => {
    await app.close()
    await db.drop()
  })

  const waits = async (count: number) =>
    await eventually('the script waits', async () => {
      const rows = await db.sql(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rows.length >= count
    })

  it('takes effect once, by the retry after a deadlock', async () => {
    await app.script('set `dead/a` 0 set `dead/b` 0')
    const rival = await db.connect()
    await rival.query(`set deadlock_timeout = '20s'`)
    await rival.query('begin')
    await rival.query(`select from holdfast.key_value where key = 'dead/b' for update`)
    const script = 'let a = get `dead/a` set `dead/a` a + 1 let b = get `dead/b` set `dead/b` b + 1'
    const running = app.script(script, {}, { lockWaitMs: 20_000, timeoutMs: 30_000 })
    const told = running.then(
      () => 'done',
      (error: unknown) => error,
    )
    await waits(1)
    await rival.query(`update holdfast.key_value set value = value where key = 'dead/a'`)
    await rival.query('commit')

    expect(await told).toBe('done')
    expect((await app.script('return get `dead/a`')).text()).toBe('1')
    expect((await app.script('return get `dead/b`')).text()).toBe('1')
  })

  it('takes effect once, by the retry after a serialization failure', async () => {
    await app.script('set serial 0')
    await db.sql(`alter database ${db.name} set default_transaction_isolation = 'repeatable read'`)
    const strict = defineApp({ name: 'strict', database: db.url, jobs: [job] })
    const rival = await db.connect()
    await rival.query('begin isolation level read committed')
    await rival.query(`update holdfast.key_value set value = '5' where key = 'serial'`)
    const running = strict.script('let n = get serial set serial n + 1', {}, { lockWaitMs: 20_000 })
    const told = running.then(
      () => 'done',
      (error: unknown) => error,
    )
    await waits(1)
    await rival.query('commit')

    expect(await told).toBe('done')
    expect((await strict.script('return get serial')).text()).toBe('6')
    await strict.close()
    await db.sql(`alter database ${db.name} reset default_transaction_isolation`)
  })

  it('in a transaction with an enqueue, tried again by its caller, gives one increment and one job', async () => {
    await app.script('set `tx/a` 0 set `tx/b` 0')
    const rival = await db.connect()
    await rival.query(`set deadlock_timeout = '20s'`)
    await rival.query('begin')
    await rival.query(`select from holdfast.key_value where key = 'tx/b' for update`)
    let tries = 0
    const attempt = async () =>
      await app.transaction(async (tx) => {
        tries += 1
        await tx.enqueue(job, null)
        const script = 'let a = get `tx/a` set `tx/a` a + 1 let b = get `tx/b` set `tx/b` b + 1'
        await app.script(script, {}, { tx, lockWaitMs: 20_000, timeoutMs: 30_000 })
      })
    const told = attempt()
      .catch(attempt)
      .then(() => 'done')
    await waits(1)
    await rival.query(`update holdfast.key_value set value = value where key = 'tx/a'`)
    await rival.query('commit')

    expect(await told).toBe('done')
    expect(tries).toBe(2)
    expect((await app.script('return get `tx/a`')).text()).toBe('1')
    expect(await db.sql('select from holdfast.job')).toHaveLength(1)
  })
})

/** KVS-7. */
describeEachApp("a script in a job's own commit", ({ open }) => {
  it('takes effect with the completion of the job, and not with an attempt that failed', async () => {
    let app: App | undefined
    const job = defineJob({
      name: 'job',
      input: anything<null>(),
      idempotent: true,
      retry: { type: 'fixed', delayMs: 0 },
      handler: async (ctx) => {
        await ctx.commit(async (tx) => {
          await app?.script(
            'set @key 1 let n = get runs set runs n + 1',
            { key: `try/${ctx.job.attempt}` },
            { tx },
          )
          if (ctx.job.attempt < 3) throw new Error('not yet')
        })
      },
    })
    await using opened = await open({ jobs: [job] })
    app = opened.app
    await app.script('set runs 0')
    const { id } = await app.enqueue(job, null)

    expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', attempts: 3 })
    expect((await app.script('return get runs')).text()).toBe('1')
    const { values } = await app.script('get by bucket try')
    expect(values.map(({ key }) => key)).toEqual(['try/3'])
  })
})
