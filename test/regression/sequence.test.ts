import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  defineApp,
  OutcomeUnknownError,
  SequenceExhaustedError,
  SequenceExistsError,
  SequenceNotFoundError,
} from '../../src/index.ts'
import { describeEachHome, type Home, inTransaction, openPgHome } from '../integration/homes.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProxy } from '../support/proxy.ts'

const MAX = 2n ** 63n - 1n

/** Row 64: gaps, order and rollback. */
describe('the values of a sequence', () => {
  let home: Awaited<ReturnType<typeof openPgHome>>
  beforeAll(async () => {
    home = await openPgHome({ maxConnections: 8 })
  })
  const clients: Client[] = []
  afterAll(async () => {
    for (const client of clients) await client.end().catch(() => {})
    await home[Symbol.asyncDispose]()
  })

  /** Ends when somebody waits for a row. */
  async function somebodyWaits(): Promise<void> {
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await eventually('somebody waits', async () => (await home.sql(waiting)).length > 0)
  }

  it('are given once each, without a gap, to 20 in parallel of whom every third rolls back', async () => {
    const { sequences } = home.app
    await sequences.create('parallel')
    const drawn = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const kept: bigint[] = []
        for (let round = 0; round < 6; round += 1) {
          const count = 1 + ((n + round) % 4)
          const act = home.app.transaction(async (tx) => {
            const { first, last } = await sequences.reserve('parallel', count, { tx })
            expect(last - first).toBe(BigInt(count - 1))
            if ((n + round) % 3 === 0) throw new Error('rolled back')
            return Array.from({ length: count }, (__, i) => first + BigInt(i))
          })
          kept.push(...(await act.catch(() => [])))
        }
        return kept
      }),
    )
    const values = drawn.flat().sort((a, b) => Number(a - b))
    expect(values.length).toBeGreaterThan(150)
    expect(values).toEqual(values.map((_, i) => BigInt(i + 1)))
    expect(await sequences.get('parallel')).toMatchObject({ current: BigInt(values.length) })
  })

  it('are the same for requests of one key that come at once', async () => {
    const { sequences } = home.app
    await sequences.create('one key')
    const reserve = async (tx?: unknown) => await sequences.reserve('one key', 3, { tx, idempotencyKey: 'k' })
    const others: Promise<unknown>[] = []
    const range = await home.transaction(async ({ tx }) => {
      const first = await reserve(tx)
      others.push(reserve(), reserve())
      await somebodyWaits()
      return first
    })
    expect(await Promise.all(others)).toEqual([range, range])
    expect(await sequences.next('one key')).toBe(4n)
  })

  it('rise in the order of commits: who comes later waits, and is given the value of who rolls back', async () => {
    const { sequences } = home.app
    await sequences.create('ordered')
    let later: Promise<bigint> | undefined
    const rolledBack = home.transaction(async ({ tx }) => {
      expect(await sequences.next('ordered', { tx })).toBe(1n)
      later = sequences.next('ordered')
      await somebodyWaits()
      throw new Error('no')
    })
    await expect(rolledBack).rejects.toThrow('no')
    expect(await later).toBe(1n)

    await home.transaction(async ({ tx }) => {
      expect(await sequences.next('ordered', { tx })).toBe(2n)
      later = sequences.next('ordered')
      await somebodyWaits()
      expect(await sequences.get('ordered')).toMatchObject({ current: 1n })
    })
    expect(await later).toBe(3n)
  })

  it('are given back by a client that is killed with its transaction open', async () => {
    const { sequences } = home.app
    await sequences.create('killed')
    const dying = home.transaction(async ({ tx, query }) => {
      expect(await sequences.reserve('killed', 10, { tx })).toMatchObject({ first: 1n, last: 10n })
      const [row] = await query('select pg_backend_pid() as pid')
      const waiting = sequences.next('killed')
      await somebodyWaits()
      await home.sql('select pg_terminate_backend($1)', [row?.['pid']])
      return await waiting
    })
    // The value is drawn; what ends in an error is the commit of who was killed.
    await expect(dying).rejects.toThrow(/terminat|not queryable/i)
    expect(await sequences.get('killed')).toMatchObject({ current: 1n, revision: 1n })
  })

  it('are never given twice in a snapshot that cannot see the last one: the transaction is to run again', async () => {
    const { sequences } = home.app
    await sequences.create('snapshot')
    for (const level of ['repeatable read', 'serializable']) {
      const client = await connect()
      await client.query(`begin isolation level ${level}`)
      await client.query('select 1')
      await sequences.next('snapshot')
      await expect(sequences.next('snapshot', { tx: client })).rejects.toMatchObject({ sqlState: '40001' })
      await client.query('rollback')
    }
    expect(await sequences.get('snapshot')).toMatchObject({ current: 2n })
  })

  it('are on disk when they are given, whatever synchronous_commit says', async () => {
    const { sequences } = home.app
    await sequences.create('durable')
    const client = await connect()
    await client.query('set synchronous_commit = off')
    const setting = async () =>
      (await client.query<{ at: string }>(`select current_setting('synchronous_commit') as at`)).rows[0]?.at
    await inTransaction(client, async ({ tx }) => {
      expect(await setting()).toBe('off')
      await sequences.next('durable', { tx })
      expect(await setting()).toBe('on')
    })
    expect(await setting()).toBe('off')
  })

  it('are asked for again by the same key when the answer was lost, and are the same', async () => {
    await using db = await createDatabase()
    await using proxy = await startProxy(db.url)
    const app = defineApp({ name: 'lost', database: proxy.url(), jobs: [] })
    try {
      await app.sequences.create('lost')
      await app.sequences.next('lost')
      const key = { idempotencyKey: randomUUID() }
      const dropped = proxy.dropAnswer('draw_values')
      await expect(app.sequences.reserve('lost', 5, key)).rejects.toBeInstanceOf(OutcomeUnknownError)
      await dropped
      expect(await app.sequences.reserve('lost', 5, key)).toMatchObject({ first: 2n, last: 6n })
      expect(await app.sequences.next('lost')).toBe(7n)
    } finally {
      await app.close()
    }
  })

  async function connect(): Promise<Client> {
    const client = new Client({ connectionString: home.url })
    client.on('error', () => {})
    clients.push(client)
    await client.connect()
    return client
  }
})

/** Row 65. */
describeEachHome('a sequence', ({ open }) => {
  let home: Home
  beforeAll(async () => {
    home = await open()
  })
  afterAll(async () => await home[Symbol.asyncDispose]())

  it('that is unknown is not made by asking for its next value', async () => {
    const { sequences } = home.app
    await expect(sequences.next('unknown')).rejects.toBeInstanceOf(SequenceNotFoundError)
    expect(await home.sql('select from holdfast.sequence')).toEqual([])
  })

  it('that exists is not reset by creating it again, with the same settings or others', async () => {
    const { sequences } = home.app
    await sequences.create('twice', { initial: 10, increment: 5 })
    await sequences.next('twice')
    const before = await sequences.get('twice')
    for (const settings of [{ initial: 10, increment: 5 }, {}, { initial: 99, max: 100 }])
      await expect(sequences.create('twice', settings)).rejects.toBeInstanceOf(SequenceExistsError)
    const all = await Promise.allSettled([1, 2, 3].map(async () => await sequences.create('at once')))
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await sequences.get('twice')).toEqual(before)
    expect(await sequences.next('twice')).toBe(20n)
  })

  it('rises: a step of 0 or below is refused', async () => {
    for (const increment of [0, -1, 0n, -(2n ** 63n)])
      await expect(home.app.sequences.create('falling', { increment })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        field: 'increment',
      })
  })

  it('ends at the end of 64 bits, and draws nothing beyond it', async () => {
    const { sequences } = home.app
    await sequences.create('full', { initial: MAX })
    await expect(sequences.next('full')).rejects.toBeInstanceOf(SequenceExhaustedError)
    await sequences.create('last', { initial: MAX - 1n })
    await expect(sequences.reserve('last', 2)).rejects.toMatchObject({ available: 1n, changed: 'nothing' })
    await expect(sequences.reserve('last', MAX)).rejects.toBeInstanceOf(SequenceExhaustedError)
    expect(await sequences.next('last')).toBe(MAX)
    await sequences.create('stride', { initial: MAX - 9n, increment: 10 })
    await expect(sequences.next('stride')).rejects.toBeInstanceOf(SequenceExhaustedError)
  })
})
