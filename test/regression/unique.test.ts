import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { defineJob, InvalidArgumentError } from '../../src/index.ts'
import {
  anything,
  appOver,
  describeEachHome,
  doorsOf,
  enqueueBySql,
  note,
  openPgHome,
} from '../integration/homes.ts'
import { withResolvers } from '../support/eventually.ts'

/** Row 26: what is a key. */
describeEachHome('a unique key', ({ kind, open }) => {
  it('is none when undefined or null, by every door', async () => {
    await using home = await open()
    await home.work()
    for (const door of doorsOf(kind)) {
      for (const none of [undefined, null]) {
        const options = { uniqueKey: none, idempotencyKey: none, delayMs: 60_000 }
        const [one, two] = [
          await door.enqueue(home, note as never, 1, options),
          await door.enqueue(home, note as never, 1, options),
        ]
        expect(one.id, door.name).not.toBe(two.id)
        expect([one.status, two.status]).toEqual(['created', 'created'])
      }
    }
    const bySql = [
      await enqueueBySql(home.sql, note.name, '1', { unique_key: null }),
      await enqueueBySql(home.sql, note.name, '1'),
    ]
    expect(bySql.map(({ status }) => status)).toEqual(['created', 'created'])
  })

  it('is refused when empty, blank, of several lines, too long or no text, by every door', async () => {
    await using home = await open()
    await home.work()
    const bad = [
      '',
      ' ',
      '\u00a0\u3000',
      'a\nb',
      'a\u2028b',
      '\u0000',
      '\ud83d',
      'x'.repeat(1025),
      'é'.repeat(513),
      5,
      {},
      true,
      ['k'],
    ]
    for (const door of doorsOf(kind)) {
      for (const key of bad) {
        for (const option of ['uniqueKey', 'idempotencyKey']) {
          const refused = door.enqueue(home, note as never, 'bad', { [option]: key })
          await expect(refused, `${door.name} ${JSON.stringify(key)}`).rejects.toThrow(InvalidArgumentError)
          await expect(refused).rejects.toMatchObject({
            field: expect.stringMatching(new RegExp(`\\.${option}$`)),
          })
        }
      }
    }
    for (const key of bad.filter(
      (it) => typeof it === 'string' && it !== '\u0000' && it !== '\ud83d',
    ) as string[]) {
      for (const option of ['unique_key', 'idempotency_key']) {
        const refused = enqueueBySql(home.sql, note.name, '"bad"', { [option]: key })
        await expect(refused, JSON.stringify(key)).rejects.toMatchObject({
          code: 'HF001',
          message: expect.stringContaining(option),
        })
      }
    }
    expect(await home.sql(`select from holdfast.job where input::text = '"bad"'`)).toEqual([])
    expect(await home.sql('select from holdfast.unique_key')).toEqual([])
  })

  it('is compared exactly up to its 1,024 bytes, incompressible ones too', async () => {
    await using home = await open()
    const random = randomBytes(768).toString('base64').slice(0, 1023)
    const keys = [
      `${random}a`,
      `${random}b`,
      'a',
      'A',
      'a ',
      'ä',
      'a\u0308',
      "o'brien",
      '"; drop table job',
      '%',
      '_',
      '{}',
      'null',
      '0',
    ]

    const first = await home.app.enqueueMany(
      keys.map((uniqueKey) => ({ job: note, input: 1, uniqueKey, delayMs: 1e6 })),
    )
    const second = await home.app.enqueueMany(keys.map((uniqueKey) => ({ job: note, input: 1, uniqueKey })))

    expect(first.every(({ status }) => status === 'created')).toBe(true)
    expect(second).toEqual(first.map(({ id }) => ({ id, status: 'existing' })))
    await expect(
      home.app.enqueue(note, 1, { uniqueKey: randomBytes(3750).toString('base64') }),
    ).rejects.toThrow(InvalidArgumentError)
  })

  it('is one of its job alone', async () => {
    const other = defineJob({ name: 'test.other', input: anything(), idempotent: true, handler: () => {} })
    await using home = await open({ jobs: [other] })
    const one = await home.app.enqueue(note, 1, { uniqueKey: 'k', delayMs: 1e6 })
    const two = await home.app.enqueue(other, 1, { uniqueKey: 'k', delayMs: 1e6 })
    expect([one.status, two.status]).toEqual(['created', 'created'])
  })
})

/** Row 27. */
describeEachHome('a bulk with keys', ({ open }) => {
  it('answers in the order given, with the id of what was there', async () => {
    await using home = await open()
    const existing = await home.app.enqueue(note, 'B', { uniqueKey: 'B', delayMs: 1e6 })

    const answers = await home.app.enqueueMany(
      ['A', 'B', 'A', 'C', undefined].map((uniqueKey, i) => ({
        job: note,
        input: i,
        ...(uniqueKey ? { uniqueKey } : {}),
      })),
    )

    expect(answers.map(({ status }) => status)).toEqual([
      'created',
      'existing',
      'existing',
      'created',
      'created',
    ])
    expect(answers[1]?.id).toBe(existing.id)
    expect(answers[2]?.id).toBe(answers[0]?.id)
    expect(new Set(answers.map(({ id }) => id)).size).toBe(4)
    expect(
      await home.sql(`select input::text from holdfast.job where id <> $1 order by id`, [existing.id]),
    ).toEqual([{ input: '0' }, { input: '3' }, { input: '4' }])
  })

  it('gives a repeated idempotency key the answer of its first item, whatever that is', async () => {
    await using home = await open()
    const existing = await home.app.enqueue(note, 'held', { uniqueKey: 'U', delayMs: 1e6 })

    const answers = await home.app.enqueueMany([
      { job: note, input: 1, idempotencyKey: 'I', uniqueKey: 'U' },
      { job: note, input: 2, idempotencyKey: 'I', uniqueKey: 'U' },
      { job: note, input: 3, idempotencyKey: 'J', uniqueKey: 'V' },
      { job: note, input: 4, idempotencyKey: 'J' },
      { job: note, input: 5, idempotencyKey: 'I', uniqueKey: 'W' },
    ])

    expect(answers[0]).toEqual({ id: existing.id, status: 'existing' })
    expect(answers[1]).toEqual(answers[0])
    expect(answers[4]).toEqual(answers[0])
    expect(answers[2]?.status).toBe('created')
    expect(answers[3]).toEqual(answers[2])
    const stored = await home.sql<{ id: string }>('select id::text from holdfast.job')
    expect(new Set(answers.map(({ id }) => id))).toEqual(new Set(stored.map(({ id }) => id)))
    expect(await home.sql(`select from holdfast.unique_key where key = 'W'`)).toEqual([])
  })

  it('repeats all its answers when it is repeated', async () => {
    await using home = await open()
    const jobs = Array.from({ length: 500 }, (_, i) => ({
      job: note,
      input: i,
      idempotencyKey: `call-${i}`,
      uniqueKey: `u-${i % 250}`,
    }))
    const first = await home.app.enqueueMany(jobs)
    expect(await home.app.enqueueMany(jobs)).toEqual(first)
    expect(first.filter(({ status }) => status === 'created')).toHaveLength(250)
    expect(await home.count()).toBe(250)
  })

  it('takes time in proportion to its length', async () => {
    await using home = await open()
    const jobs = (n: number, tag: string) =>
      Array.from({ length: n }, (_, i) => ({
        job: note,
        input: i,
        uniqueKey: `${tag}-${i % (n / 2)}`,
        idempotencyKey: `${tag}-${i}`,
      }))
    const time = async (n: number, tag: string) => {
      const before = performance.now()
      await home.app.enqueueMany(jobs(n, tag))
      return performance.now() - before
    }
    const small = Math.min(await time(400, 'a'), await time(400, 'b'), await time(400, 'c'))
    const large = await time(20_000, 'large')
    // Fifty times as many: a loop in a loop would take 2,500 times as long, and a busy machine not ten times.
    expect(large).toBeLessThan(small * 500)
  })
})

/** Row 29, and scenarios 77 to 79. */
describeEachHome('a keyed job', ({ open }) => {
  it('keeps its key over retry and snooze, and frees it when it has ended', async () => {
    const seen: string[] = []
    const moody = defineJob({
      name: 'moody',
      input: anything<string>(),
      effects: ['enqueue:moody'],
      idempotent: true,
      maxAttempts: 2,
      retry: { type: 'fixed', delayMs: 0 },
      handler: async (ctx, how) => {
        const conflict = await ctx.enqueue(moody, 'again', { uniqueKey: how })
        seen.push(`${how} ${conflict.status}`)
        const times = seen.filter((entry) => entry.startsWith(how)).length
        if (how === 'snooze' && times === 1) ctx.snooze({ inMs: 1 })
        if (how === 'retry' && times === 1) throw new Error('once')
        if (how === 'discard') ctx.discard('no')
        if (how === 'cancel') ctx.cancel('no')
        if (how === 'fail') throw new Error('always')
      },
    })
    await using home = await open({ jobs: [moody] })
    const kinds = ['retry', 'snooze', 'discard', 'cancel', 'fail', 'complete']
    const first = await home.app.enqueueMany(
      kinds.map((kind) => ({ job: moody, input: kind, uniqueKey: kind })),
    )
    await home.work()
    const ends = await Promise.all(
      first.map(async ({ id }) => await home.app.job(id).wait({ timeoutMs: 15_000 })),
    )

    expect(ends.map((end) => end?.state)).toEqual([
      'completed',
      'completed',
      'discarded',
      'cancelled',
      'discarded',
      'completed',
    ])
    expect(seen.filter((entry) => entry.endsWith('created'))).toEqual([])
    expect(await home.sql('select from holdfast.unique_key')).toEqual([])
    for (const kind of kinds) {
      const next = await home.app.enqueue(note, 1, { uniqueKey: kind })
      expect(next.status).toBe('created')
    }
  })

  it('frees its key when it is cancelled before it ran', async () => {
    await using home = await open()
    const first = await home.app.enqueue(note, 1, { uniqueKey: 'k', delayMs: 1e6 })
    expect(await home.app.job(first.id).cancel()).toEqual({ status: 'cancelled' })
    const next = await home.app.enqueue(note, 1, { uniqueKey: 'k', delayMs: 1e6 })
    expect(next).toMatchObject({ status: 'created' })
    expect(await home.app.job(first.id).cancel()).toEqual({ status: 'finished', state: 'cancelled' })
    expect(await home.app.enqueue(note, 1, { uniqueKey: 'k' })).toEqual({ id: next.id, status: 'existing' })
  })

  it('is run twice when its first delivery was not acknowledged: the key guards the queue, not the provider', async () => {
    let accepted = 0
    const send = defineJob({
      name: 'send',
      input: anything(),
      idempotent: true,
      retry: { type: 'fixed', delayMs: 0 },
      handler: () => {
        accepted += 1
        if (accepted === 1) throw new Error('crashed after the provider accepted')
      },
    })
    await using home = await open({ jobs: [send] })
    const { id } = await home.app.enqueue(send, 1, { uniqueKey: 'order-1', idempotencyKey: 'order-1' })
    await home.work()
    await home.app.job(id).wait({ timeoutMs: 20_000 })
    expect(accepted).toBe(2)
  })
})

/** Row 28 and scenario 77. */
describe('racing for a key', () => {
  it('gives all of fifty callers on ten connections one job, round after round', async () => {
    await using home = await openPgHome()
    const apps = Array.from({ length: 10 }, () => appOver(home.url, { maxConnections: 5 }))
    try {
      for (let round = 0; round < 20; round += 1) {
        const answers = await Promise.all(
          Array.from(
            { length: 50 },
            async (_, i) => await apps[i % 10]?.enqueue(note, i, { uniqueKey: `r${round}`, delayMs: 1e6 }),
          ),
        )
        expect(new Set(answers.map((answer) => answer?.id)).size).toBe(1)
        expect(answers.filter((answer) => answer?.status === 'created')).toHaveLength(1)
      }
      expect(await home.count()).toBe(20)
    } finally {
      await Promise.all(apps.map(async (app) => await app.close()))
    }
  })

  it('gives at most one newer job while the holder completes', async () => {
    await using home = await openPgHome()
    const apps = Array.from({ length: 10 }, () => appOver(home.url, { maxConnections: 5 }))
    await home.work()
    try {
      for (let round = 0; round < 20; round += 1) {
        const uniqueKey = `r${round}`
        const holder = await home.app.enqueue(note, 'holder', { uniqueKey })
        const answers = await Promise.all(
          Array.from(
            { length: 50 },
            async (_, i) => await apps[i % 10]?.enqueue(note, i, { uniqueKey, delayMs: 1e6 }),
          ),
        )
        const ids = new Set(answers.map((answer) => answer?.id))
        ids.delete(holder.id)
        expect(ids.size).toBeLessThanOrEqual(1)
        await home.app.job(holder.id).wait({ timeoutMs: 20_000 })
        expect(await home.sql('select from holdfast.unique_key where key = $1', [uniqueKey])).toHaveLength(
          ids.size,
        )
      }
    } finally {
      await Promise.all(apps.map(async (app) => await app.close()))
    }
  })

  it('gives all of fifty callers with one idempotency key one answer', async () => {
    await using home = await openPgHome()
    const apps = Array.from({ length: 10 }, () => appOver(home.url, { maxConnections: 5 }))
    try {
      for (let round = 0; round < 10; round += 1) {
        const answers = await Promise.all(
          Array.from(
            { length: 50 },
            async (_, i) =>
              await apps[i % 10]?.enqueue(note, i, {
                idempotencyKey: `r${round}`,
                uniqueKey: `u${round}`,
                delayMs: 1e6,
              }),
          ),
        )
        expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
      }
      expect(await home.count()).toBe(10)
    } finally {
      await Promise.all(apps.map(async (app) => await app.close()))
    }
  })

  it('gives a row when the holder rolls back, and the holder when it commits', async () => {
    await using home = await openPgHome()
    for (const end of ['rollback', 'commit']) {
      for (const option of ['uniqueKey', 'idempotencyKey']) {
        const client = new Client({ connectionString: home.url })
        await client.connect()
        await client.query('begin')
        const held = await home.app.enqueue(note, 'held', { tx: client, [option]: `${end} ${option}` })
        const waiting = home.app.enqueue(note, 'waited', { [option]: `${end} ${option}` })
        await lockWaiters(home.sql, 1)
        await client.query(end)
        const answer = await waiting
        if (end === 'commit') expect(answer.id).toBe(held.id)
        else expect(answer).toEqual({ id: expect.not.stringMatching(`^${held.id}$`), status: 'created' })
        expect(await home.app.job(answer.id).get()).toMatchObject({ state: 'available' })
        await client.end()
      }
    }
  })

  it('gives a row when the holder ends between the insert and the look', async () => {
    await using home = await openPgHome()
    const holder = await home.app.enqueue(note, 'holder', { uniqueKey: 'k', delayMs: 1e6 })
    // The holder's end is held open with its key already deleted: the caller waits for exactly that row.
    const client = new Client({ connectionString: home.url })
    await client.connect()
    await client.query('begin')
    await client.query('delete from holdfast.unique_key where job_id = $1', [holder.id])
    const waiting = home.app.enqueue(note, 'next', { uniqueKey: 'k', delayMs: 1e6 })
    await client.query('commit')
    expect(await waiting).toMatchObject({ status: expect.stringMatching(/created|existing/) })
    expect(await home.sql('select from holdfast.unique_key')).toHaveLength(1)
    await client.end()
  })

  it('stalls nobody else while an open transaction holds the key', async () => {
    await using home = await openPgHome()
    const client = new Client({ connectionString: home.url })
    await client.connect()
    await client.query('begin')
    await home.app.enqueue(note, 'held', { tx: client, uniqueKey: 'k' })
    const order: string[] = []
    const waiting = home.app.enqueue(note, 'waits', { uniqueKey: 'k' }).then(() => order.push('held'))
    await lockWaiters(home.sql, 1)

    await Promise.all([
      ...Array.from(
        { length: 20 },
        async (_, i) => await home.app.enqueue(note, i).then(() => order.push('plain')),
      ),
      ...Array.from(
        { length: 5 },
        async (_, i) =>
          await home.app.enqueue(note, i, { uniqueKey: `other-${i}` }).then(() => order.push('keyed')),
      ),
    ])
    await client.query('commit')
    await waiting

    expect(order).toHaveLength(26)
    expect(order.at(-1)).toBe('held')
    await client.end()
  })

  it('tells a caller in REPEATABLE READ that it has to run again, as documented, and never hangs', async () => {
    await using home = await openPgHome()
    const client = new Client({ connectionString: home.url })
    await client.connect()
    await client.query('begin isolation level repeatable read')
    await client.query('select 1 from holdfast.unique_key')
    await home.app.enqueue(note, 1, { uniqueKey: 'k', delayMs: 1e6 })
    const late = home.app.enqueue(note, 2, { tx: client, uniqueKey: 'k' })
    await expect(late).rejects.toMatchObject({ code: 'DATABASE', sqlState: '40001' })
    await client.query('rollback')
    await client.end()
  })
})

async function lockWaiters(sql: (text: string) => Promise<unknown[]>, count: number): Promise<void> {
  const { promise, resolve, reject } = withResolvers<void>()
  const until = performance.now() + 10_000
  const look = async (): Promise<void> => {
    const waiting = await sql(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (waiting.length >= count) return resolve()
    if (performance.now() > until) return reject(new Error(`${waiting.length} of ${count} wait for a lock`))
    setTimeout(() => void look().catch(reject), 10)
  }
  void look().catch(reject)
  return await promise
}
