import { PGlite } from '@electric-sql/pglite'
import { describe, expect, it } from 'vitest'
import { channelOf } from '../../src/base/channel.ts'
import { defineJob, InvalidArgumentError } from '../../src/index.ts'
import { anything, appOver, describeEachHome, note } from '../integration/homes.ts'
import { createDatabase } from '../support/database.ts'

/** Row 46. */
const names = [
  'MySchema',
  'my-schema',
  `o'brien "the" best`,
  '; drop table job; --',
  '/* comment */',
  '0leading',
  '漢字かな',
  'a.b:c/d',
  ' a',
  'a ',
  'A',
  'a',
  'back\\slash',
  ':schema',
  ':channel and :schema_literal',
  'select',
  '%I %s',
  '{a,b}',
  'é',
  'e\u0301',
  'x'.repeat(60),
  '漢'.repeat(20),
]

const round = async (url: string | PGlite, schema: string, name: string) => {
  const ran: string[] = []
  const queue = name
  const job = defineJob({
    name,
    queue,
    input: anything<string>(),
    idempotent: true,
    handler: (_ctx, input) => void ran.push(input),
  })
  const app = appOver(url, { schema, jobs: [job], queues: { [queue]: {} } })
  try {
    await app.migrate()
    const one = await app.enqueue(job, name, { uniqueKey: name, idempotencyKey: name })
    const two = await app.enqueueMany([{ job, input: 'b', runAt: new Date(0) }])
    const three = await app.transaction(async (tx) => await tx.enqueue(job, 'c', { delayMs: 1 }))
    await app.worker({ name }).start()
    for (const { id } of [one, ...two, three]) {
      expect(await app.job(id).wait({ timeoutMs: 20_000 }), `${schema} ${name}`).toMatchObject({
        state: 'completed',
      })
    }
    expect(await app.job(one.id).get()).toMatchObject({ name, queue, uniqueKey: name, input: name })
    expect(ran.toSorted()).toEqual([name, 'b', 'c'].toSorted())
    const cancelled = await app.enqueue(job, 'd', { delayMs: 1e6 })
    expect(await app.job(cancelled.id).cancel({ reason: name })).toEqual({ status: 'cancelled' })
  } finally {
    await app.close()
  }
}

describe('a name of any kind', () => {
  it.each(names)(
    'is taken literally through the whole round, as schema, queue, job, worker and key: %j',
    async (name) => {
      await using db = await createDatabase({ migrated: false })
      const schema = name
      await round(db.url, schema, name)
      expect(
        await db.sql(
          `select nspname from pg_namespace where nspname not like 'pg\\_%' and nspname not in ('information_schema', 'public')`,
        ),
      ).toEqual([{ nspname: schema }])
      await db.sql(`drop schema "${schema.replaceAll('"', '""')}" cascade`)
      expect(await db.sql(`select relname from pg_class where relname in ('job', 'ready')`)).toEqual([])
    },
  )

  it('is told apart from those that differ by case, form or blanks, in one database', async () => {
    await using db = await createDatabase({ migrated: false })
    for (const schema of ['a', 'A', 'é', 'e\u0301', 'a b', 'a  b']) await round(db.url, schema, schema)
    expect(
      await db.sql(`select from pg_namespace where nspname in ('a', 'A', 'é', 'e\u0301', 'a b', 'a  b')`),
    ).toHaveLength(6)
  })

  it('works on PGlite too', async () => {
    const instance = new PGlite()
    try {
      for (const name of [`o'brien "the" best`, ':channel and :schema_literal', '漢字かな'])
        await round(instance, name, name)
    } finally {
      await instance.close()
    }
  })

  it.each(['', ' ', 'x'.repeat(64), '漢'.repeat(22), 'a\nb', 'a\0b', '\ud83d', 'pg_mine', 'dollar$', 5])(
    'as a schema is refused before the first statement: %j',
    (schema) => {
      expect(() => appOver('postgres://u@127.0.0.1:1/db', { schema: schema as string })).toThrow(/schema/)
    },
  )

  it.each(['', ' ', 'x'.repeat(256), '漢'.repeat(86), 'a\nb', 'a\0b', '\ud83d', 5, null, {}])(
    'as a job, a queue, an application or a worker is refused: %j',
    (name) => {
      const bad = name as string
      expect(() => defineJob({ name: bad, input: anything(), idempotent: true, handler: () => {} })).toThrow(
        InvalidArgumentError,
      )
      expect(() => appOver('pglite:memory:', { name: bad })).toThrow(/name/)
      if (typeof name === 'string')
        expect(() => appOver('pglite:memory:', { queues: { [name]: {} } })).toThrow(/queues/)
      if (name !== null) {
        expect(() =>
          defineJob({ name: 'x', queue: bad, input: anything(), idempotent: true, handler: () => {} }),
        ).toThrow(InvalidArgumentError)
        expect(() => appOver('pglite:memory:').worker({ name: bad })).toThrow(InvalidArgumentError)
      }
    },
  )
})

/** Row 36. */
describe('the channel of notifications', () => {
  it('fits its limit for any schema, and is another one for another schema', () => {
    const channels = names.map(channelOf)
    expect(new Set(channels).size).toBe(names.length)
    for (const channel of channels) expect(Buffer.byteLength(channel)).toBeLessThanOrEqual(63)
  })

  it('wakes a worker of a long queue in a long schema at once', async () => {
    await using db = await createDatabase({ migrated: false })
    const queue = `${'q'.repeat(240)} long`
    const job = defineJob({ name: 'j', queue, input: anything(), idempotent: true, handler: () => {} })
    const app = appOver(db.url, {
      schema: 's'.repeat(63),
      jobs: [job],
      queues: { [queue]: {} },
      maxPollMs: 60_000,
    })
    try {
      await app.migrate()
      await app.worker().start()
      const first = await app.enqueue(job, 0)
      await app.job(first.id).wait({ timeoutMs: 20_000 })
      const before = performance.now()
      const { id } = await app.enqueue(job, 1)
      expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
      expect(performance.now() - before).toBeLessThan(2000)
    } finally {
      await app.close()
    }
  })
})

/** NAM-1: injection text leaves the tables alone. */
describeEachHome('text that would be SQL', ({ open }) => {
  it('is only text, in keys, inputs, reasons and idempotency keys', async () => {
    await using home = await open()
    const text = `'); drop table holdfast.job cascade; --`
    const { id } = await home.app.enqueue(
      note,
      { [text]: text },
      { uniqueKey: text, idempotencyKey: text, delayMs: 1e6 },
    )
    await home.app.job(id).cancel({ reason: text })
    expect(await home.app.job(id).get()).toMatchObject({
      state: 'cancelled',
      reason: text,
      input: { [text]: text },
      uniqueKey: text,
    })
  })
})
