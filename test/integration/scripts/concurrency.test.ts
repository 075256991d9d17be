import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp, ScriptAbortedError } from '../../../src/index.ts'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'

describe('scripts that run at the same time', () => {
  let db: TestDatabase
  let app: App
  beforeAll(async () => {
    db = await createDatabase()
    app = defineApp({ name: 'test', database: db.url, jobs: [], maxConnections: 10 })
  })
  afterAll(async () => {
    await app.close()
    await db.drop()
  })

  const waiting = async () =>
    await db.sql(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%run_script%'`,
    )

  it('neither lose nor make money: 8 clients transfer between 4 accounts, some of which appear on the way', async () => {
    const accounts = ['acc/1', 'acc/2', 'acc/3', 'acc/4']
    await app.script('set `acc/1` 100 set `acc/2` 100')
    const transfer = `
      let a = get @from
      let b = get @to
      if a = null then return 'none' end
      let have = to_int(a)
      if have < 7 then return 'short' end
      set @from have - 7
      if b = null then set @to 7 else set @to to_int(b) + 7 end
      return 'moved'`
    const answers = { moved: 0, short: 0, none: 0 }
    const sums: (string | null)[] = []
    const sum = 'let s = 0 for x in get by bucket acc do let s = s + x end return s'
    await Promise.all(
      Array.from({ length: 8 }, async (_, client) => {
        for (let round = 0; round < 12; round += 1) {
          const from = accounts[(client + round) % 4] as string
          const to = accounts[(client * 3 + round * 2 + 1) % 4] as string
          if (from === to) continue
          const answer = await app.script(transfer, { from, to }, { lockWaitMs: 20_000, timeoutMs: 30_000 })
          answers[answer.text() as keyof typeof answers] += 1
          if (round % 4 === 0) sums.push((await app.script(sum, {}, { lockWaitMs: 20_000 })).text())
        }
      }),
    )
    expect((await app.script(sum)).text()).toBe('200')
    expect(new Set(sums)).toEqual(new Set(['200']))
    expect(answers.moved).toBeGreaterThan(20)
  })

  it('count every increment: none reads what another is about to change', async () => {
    const script = 'let n = get hits if n = null then set hits 1 else set hits n + 1 end'
    await Promise.all(
      Array.from({ length: 40 }, async () => await app.script(script, {}, { lockWaitMs: 20_000 })),
    )
    expect((await app.script('get hits')).integer()).toBe(40n)
  })

  it('see one state of a bucket from start to end: a key created meanwhile waits', async () => {
    await app.script('set `ph/1` 1')
    const script = `let before = get by bucket ph
      sleep 1000
      let after = get by bucket ph
      set \`ph/result\` concat(to_str(count(before)), to_str(count(after)))`
    const running = app.script(script, {}, { timeoutMs: 20_000 })
    await eventually('the script sleeps', async () => {
      return (
        (
          await db.sql(
            `select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
          )
        ).length > 0
      )
    })
    const created = app.script('set `ph/2` 1', {}, { lockWaitMs: 20_000 })
    const changed = app.script('delete `ph/1`', {}, { lockWaitMs: 20_000 })
    await eventually('both wait for it', async () => (await waiting()).length === 2)
    await Promise.all([running, created, changed])

    expect((await app.script('get `ph/result`')).text()).toBe('11')
  })

  it('wait for a key at most lockWaitMs, then give up with the line, and with nothing done', async () => {
    await app.script('set lock/held 1'.replace('lock/held', '`lock/held`'))
    const holder = await db.connect()
    await holder.query('begin')
    await holder.query(`select from holdfast.key_value where key = 'lock/held' for update`)
    const script = 'set `lock/free` 1\nlet a = get `lock/held`\nset `lock/held` 2'
    const error = await app.script(script, {}, { lockWaitMs: 30 }).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(ScriptAbortedError)
    expect(error).toMatchObject({ reason: 'lock-timeout', line: 1 })

    const patient = app.script(script, {}, { lockWaitMs: 20_000 })
    await eventually('the script waits', async () => (await waiting()).length === 1)
    await holder.query('commit')
    expect(await patient).toMatchObject({ type: 'set', revision: 1n })
    expect(await app.script('get `lock/free`')).toMatchObject({ revision: 0n })
  })

  it('with optimistic locking do not wait for a key that they only read', async () => {
    await app.script('set `opt/read` 1')
    const holder = await db.connect()
    await holder.query('begin')
    await holder.query(`select from holdfast.key_value where key = 'opt/read' for update`)
    const body = 'let a = get `opt/read` set `opt/write` a commit end'
    const options = { lockWaitMs: 30 }
    expect(await app.script(`begin (locking=optimistic) ${body}`, {}, options)).toMatchObject({ type: 'set' })
    const error = await app.script(`begin ${body}`, {}, options).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ reason: 'lock-timeout' })
    await holder.query('rollback')
  })

  it('tell a caller with a transaction of its own about a deadlock, and leave that transaction usable', async () => {
    await app.script('set `dl/a` 1 set `dl/b` 1')
    const holder = await db.connect()
    await holder.query(`set deadlock_timeout = '20s'`)
    await holder.query('begin')
    await holder.query(`select from holdfast.key_value where key = 'dl/b' for update`)
    let blocked: Promise<unknown> | undefined
    await app.transaction(async (tx) => {
      await tx.query(`set local deadlock_timeout = '300ms'`)
      await tx.query(`select from holdfast.key_value where key = 'dl/a' for update`)
      blocked = holder.query(`update holdfast.key_value set value = value where key = 'dl/a'`)
      const error = await app
        .script('set `dl/b` 2', {}, { tx, lockWaitMs: 20_000, timeoutMs: 20_000 })
        .catch((caught: unknown) => caught)
      expect(error).toMatchObject({ code: 'SCRIPT_ABORTED', reason: 'conflict' })
      expect(await app.script('get `dl/a`', {}, { tx })).toMatchObject({ revision: 0n })
    })
    await blocked
    await holder.query('commit')
  })
})
