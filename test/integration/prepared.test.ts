import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { channelOf } from '../../src/base/channel.ts'
import { type App, defineJob } from '../../src/index.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { startProxy } from '../support/proxy.ts'
import { anything, appOver, note } from './homes.ts'

/**
 * An enqueue in a transaction of the caller's goes by a statement that is prepared on the caller's client, where that
 * client is connected to where the application is and no transaction pooler is between: whatever its session forgets.
 */

const once = defineJob({
  name: 'test.once',
  input: anything(),
  idempotent: true,
  maxAttempts: 1,
  priority: 2,
  queue: 'mail',
  handler: () => {},
})

let db: TestDatabase
let app: App
beforeAll(async () => {
  db = await createDatabase()
  app = appOver(db.url, { jobs: [once] })
})
afterAll(async () => {
  await app.close()
  await db.drop()
})

async function connected(url = db.url, config: { readonly pipeline?: true } = {}) {
  const client = new Client({ connectionString: url, ...config })
  await client.connect()
  return Object.assign(client, { [Symbol.asyncDispose]: async () => await client.end() })
}

async function enqueued(client: Client, input: unknown, by: App = app): Promise<string> {
  await client.query('begin')
  const { id } = await by.enqueue(note, input, { tx: client })
  await client.query('commit')
  return id
}

async function preparedOn(client: Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select regexp_replace(name, '_[0-9a-f]{8}$', '') as name from pg_prepared_statements`,
  )
  return rows.map(({ name }) => name)
}

describe('the client of a caller', () => {
  it('is asked by a prepared statement, and by no other', async () => {
    await using client = await connected()
    const ids = [await enqueued(client, 1), await enqueued(client, 2)]
    expect(await preparedOn(client)).toEqual(['hf_enqueue_one_job'])
    await client.query('begin')
    await app.enqueue(note, 3, { tx: client, delayMs: 1000 })
    await app.enqueue(note, 4, { tx: client, uniqueKey: 'k' })
    await app.enqueueMany([{ job: note, input: 5 }, { job: note }], { tx: client })
    await client.query('rollback')
    expect(await preparedOn(client)).toEqual(['hf_enqueue_one_job'])
    expect(
      await db.sql('select input::text from holdfast.job where id = any ($1) order by id', [ids]),
    ).toEqual([{ input: '1' }, { input: '2' }])
  })

  it.each(['discard all', 'deallocate all'])('may forget what it prepared: %s', async (forget) => {
    await using client = await connected()
    await enqueued(client, 1)
    await client.query(forget)
    expect(await preparedOn(client)).toEqual([])
    await enqueued(client, 2)
    expect(await preparedOn(client)).toEqual(['hf_enqueue_one_job'])
    if (forget === 'discard all') return
    await client.query('begin')
    await client.query(forget)
    await app.enqueue(note, 3, { tx: client })
    expect((await client.query('commit')).command).toBe('COMMIT')
  })

  it('that forgot unseen fails one transaction, and is asked without names from then on', async () => {
    await using client = await connected()
    await enqueued(client, 1)
    await client.query('begin')
    await client.query(`do $$ begin execute 'deallocate all'; end $$`)
    await expect(app.enqueue(note, 2, { tx: client })).rejects.toMatchObject({
      code: 'DATABASE',
      sqlState: '26000',
    })
    await client.query('rollback')
    const id = await enqueued(client, 3)
    expect(await preparedOn(client)).toEqual([])
    expect(await db.sql('select input::text from holdfast.job where id = $1', [id])).toEqual([{ input: '3' }])
  })

  it('may be pipelined', async () => {
    await using client = await connected(db.url, { pipeline: true })
    await client.query('begin')
    const ids = await Promise.all([1, 2].map(async (n) => (await app.enqueue(note, n, { tx: client })).id))
    await client.query('commit')
    expect(new Set(ids).size).toBe(2)
    expect(await preparedOn(client)).toContain('hf_enqueue_one_job')
  })

  it('keeps statements of its own that are named as it likes', async () => {
    await using client = await connected()
    const own = { name: 'own', text: 'select 1 as n' }
    await client.query(own)
    await enqueued(client, 1)
    await client.query('deallocate all')
    await expect(client.query(own)).rejects.toMatchObject({ code: '26000' })
  })
})

it('tells those who sleep in the queue, at the commit, and nobody else', async () => {
  await using listening = await connected()
  const heard: (string | undefined)[] = []
  listening.on('notification', ({ payload }) => heard.push(payload))
  await listening.query(`listen ${channelOf('holdfast')}`)
  await db.sql(`insert into holdfast.waiter (queue, worker_id) values ('mail', 1), ('mail', 2)`)
  try {
    await using client = await connected()
    await client.query('begin')
    await app.enqueue(note, 1, { tx: client })
    await app.enqueue(once, 2, { tx: client })
    await app.enqueue(once, 3, { tx: client })
    expect(await preparedOn(client)).toEqual(['hf_enqueue_one_job'])
    await listening.query('select')
    expect(heard).toEqual([])
    await client.query('commit')
    await listening.query('select')
    const [mail] = await db.sql(`select to_hex(hashtextextended('mail', 0)) as signal`)
    expect(heard).toEqual([mail?.['signal']])
  } finally {
    await db.sql('delete from holdfast.waiter')
  }
})

describe('nothing is prepared on a client', () => {
  it('that is connected to some other address', async () => {
    const proxy = await startProxy(db.url)
    try {
      await using client = await connected(proxy.url(db.name))
      await enqueued(client, 1)
      expect(await preparedOn(client)).toEqual([])
    } finally {
      await proxy.close()
    }
  })

  it('of an application that says there is a pooler', async () => {
    await using client = await connected()
    const pooled = appOver(db.url, { pooler: true })
    try {
      await enqueued(client, 1, pooled)
      expect(await preparedOn(client)).toEqual([])
      await pooled.transaction(async (tx) => {
        await tx.enqueue(note, 2)
        expect((await tx.query('select from pg_prepared_statements')).rows).toEqual([])
      })
    } finally {
      await pooled.close()
    }
  })
})

it('a transaction of ours prepares it too', async () => {
  const names = await app.transaction(async (tx) => {
    await tx.enqueue(note, 1)
    return (
      await tx.query<{ name: string }>(`select name from pg_prepared_statements where name ~ 'one_job'`)
    ).rows
  })
  expect(names).toHaveLength(1)
})

describe('the statement stores what the function stores', () => {
  const context = { user: 'ä"\\', roles: ['a'] }
  it.each([
    { job: note, options: {} },
    { job: note, options: { priority: 0, context } },
    { job: note, options: { maxAttempts: 1, queue: 'mail' } },
    { job: once, options: {} },
    { job: once, options: { maxAttempts: 7, priority: 9 } },
  ])('$job.name with $options', async ({ job, options }) => {
    await using client = await connected()
    const proxy = await startProxy(db.url)
    try {
      await using elsewhere = await connected(proxy.url(db.name))
      for (const input of [{ text: 'ä"\\\n', n: 1e21 }, null, undefined, [1.5]]) {
        const stored = []
        for (const door of [client, elsewhere]) {
          await door.query('begin')
          const { id } = await app.enqueue(job, input, { ...options, tx: door })
          stored.push(
            (
              await door.query(
                `select j.enqueued_at <= statement_timestamp() as past, j.run_at, j.priority, j.max_attempts,
                   j.name, j.queue, j.tenant, j.unique_key, j.contract, j.context::text, j.input::text, j.has_checkpoint, r.seq = j.id as in_place,
                   r.priority as ready_priority, r.attempts, r.crashes, r.care, r.queue as ready_queue
                 from holdfast.job j join holdfast.ready r on r.job_id = j.id where j.id = $1`,
                [id],
              )
            ).rows,
          )
          await door.query('rollback')
        }
        expect(stored[0]).toHaveLength(1)
        expect(stored[0]).toEqual(stored[1])
      }
    } finally {
      await proxy.close()
    }
  })
})
