import { once } from 'node:events'
import { Socket } from 'node:net'
import { Client, type ClientConfig } from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createDatabase, type TestDatabase } from './database.ts'
import { eventually, nextEvent } from './eventually.ts'
import { type Proxy, startProxy } from './proxy.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createDatabase({ migrated: false })
  await db.sql('create table entry (n int)')
})
afterAll(() => db.drop())

interface Connected extends AsyncDisposable {
  readonly proxy: Proxy
  readonly client: Client
}

/** A client that reaches the database through a proxy of its own. */
async function connectThroughProxy(config: ClientConfig = {}): Promise<Connected> {
  const proxy = await startProxy(db.url)
  const client = new Client({ connectionString: proxy.url(), ...config })
  client.on('error', () => {})
  await client.connect()
  return {
    proxy,
    client,
    async [Symbol.asyncDispose]() {
      await proxy.close()
      await client.end().catch(() => {})
    },
  }
}

async function isStored(n: number): Promise<boolean> {
  return (await db.sql('select from entry where n = $1', [n])).length === 1
}

describe('a proxy that passes', () => {
  it('carries simple, extended, named and large statements, and counts them', async () => {
    await using link = await connectThroughProxy()
    const { client, proxy } = link
    const large = 'x'.repeat(3_000_000)

    expect((await client.query('select 1 as n')).rows).toEqual([{ n: 1 }])
    expect((await client.query('select $1::text as t', [large])).rows).toEqual([{ t: large }])
    for (const n of [1, 2]) {
      const { rows } = await client.query({ name: 'named', text: 'select $1::int as n', values: [n] })
      expect(rows).toEqual([{ n }])
    }

    expect(proxy.counts).toMatchObject({ connections: 1, open: 1, statements: 4, faults: 0, resets: 0 })
  })

  it('carries notifications that nobody asked for', async () => {
    await using link = await connectThroughProxy()
    await link.client.query('listen news')
    const heard = once(link.client, 'notification')
    await db.sql(`select pg_notify('news', 'hello')`)
    expect(await heard).toMatchObject([{ channel: 'news', payload: 'hello' }])
  })

  it('tells what is asked and answered', async () => {
    await using link = await connectThroughProxy()
    const { events } = link.proxy
    const statement = nextEvent(events, 'statement')
    const answer = nextEvent(events, 'answer', { where: ({ round }) => round.texts.length > 0 })
    await expect(link.client.query('select 1 / 0 /* wrong */')).rejects.toMatchObject({ code: '22012' })
    expect(await statement).toMatchObject([{ text: 'select 1 / 0 /* wrong */' }])
    expect(await answer).toMatchObject([{ round: { tags: [], sqlState: '22012' } }])
  })

  it('closes the server’s side when the client goes', async () => {
    await using link = await connectThroughProxy()
    const closed = nextEvent(link.proxy.events, 'closed')
    await link.client.end()
    await closed
    expect(link.proxy.counts.open).toBe(0)
  })

  it('delays each way', async () => {
    await using link = await connectThroughProxy()
    link.proxy.delay(60)
    const before = performance.now()
    await link.client.query('select 1')
    expect(performance.now() - before).toBeGreaterThanOrEqual(119)
  })

  it('sends new connections to another server on request', async () => {
    await using other = await createDatabase({ migrated: false })
    await using link = await connectThroughProxy()
    link.proxy.retarget(other.url)
    const client = new Client({ connectionString: link.proxy.url() })
    await client.connect()
    const { rows } = await client.query<{ name: string }>('select current_database() as name')
    expect(rows).toEqual([{ name: other.name }])
    await client.end()
  })
})

describe('a frozen proxy', () => {
  it('neither answers nor resets, and loses nothing when it passes again', async () => {
    await using link = await connectThroughProxy()
    let settled = false
    link.proxy.freeze()
    const query = link.client.query('insert into entry values (100)').finally(() => {
      settled = true
    })
    await db.sql('select pg_sleep(0.2)')
    expect(settled).toBe(false)
    expect(await isStored(100)).toBe(false)

    link.proxy.pass()
    await query
    expect(await isStored(100)).toBe(true)
  })

  it('lets new connections hang', async () => {
    await using proxy = await startProxy(db.url)
    proxy.freeze()
    const client = new Client({ connectionString: proxy.url(), connectionTimeoutMillis: 200 })
    client.on('error', () => {})
    await expect(client.connect()).rejects.toThrow(/timeout/)
  })

  it('hides from the server that the client has gone', async () => {
    await using link = await connectThroughProxy()
    const { rows } = await link.client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const pid = rows[0]?.pid
    const session = () => db.sql('select from pg_stat_activity where pid = $1', [pid])
    link.proxy.freeze()
    const { stream } = link.client.connection
    if (!(stream instanceof Socket)) throw new Error('not over TCP')
    stream.resetAndDestroy()
    await db.sql('select pg_sleep(0.2)')
    expect(await session()).toHaveLength(1)
    link.proxy.pass()
    await eventually('the server has noticed', async () => (await session()).length === 0)
  })
})

describe('a cut', () => {
  it('resets open connections at once; new ones work', async () => {
    await using link = await connectThroughProxy()
    const sleeping = link.client.query('select pg_sleep(30)')
    await nextEvent(link.proxy.events, 'statement')
    expect(link.proxy.cut()).toBe(1)
    await expect(sleeping).rejects.toThrow(/ECONNRESET|terminated/)

    const again = new Client({ connectionString: link.proxy.url() })
    await again.connect()
    await again.end()
  })

  it('can refuse new connections and leave open ones alone', async () => {
    await using link = await connectThroughProxy()
    link.proxy.refuse()
    const refused = new Client({ connectionString: link.proxy.url() })
    refused.on('error', () => {})
    await expect(refused.connect()).rejects.toThrow(/ECONNRESET|terminated/)
    expect((await link.client.query('select 1 as n')).rows).toEqual([{ n: 1 }])
  })

  it.each([0, 1, 7, 40])('comes after byte %i of an answer', async (bytes) => {
    await using link = await connectThroughProxy()
    const text = `/* holdfast:wide */ insert into entry select 1 returning repeat('x', 100)`
    const hit = link.proxy.cutAnswer('/* holdfast:wide */', bytes)
    await expect(link.client.query(text)).rejects.toThrow(/ECONNRESET|terminated/)

    expect(await hit).toMatchObject({ texts: [text], bytes })
    await eventually('the connection is gone', () => link.proxy.counts.open === 0)
    expect(link.proxy.counts.faults).toBe(1)
  })

  it('comes after the whole of an answer that is shorter', async () => {
    await using link = await connectThroughProxy()
    const hit = link.proxy.cutAnswer('select', 1_000_000)
    expect((await link.client.query('select 1 as n')).rows).toEqual([{ n: 1 }])
    expect((await hit).bytes).toBeLessThan(1_000)
    await eventually('the connection is gone', () => link.proxy.counts.open === 0)
  })
})

describe('a lost reply', () => {
  it('keeps back the answer to COMMIT after the server has committed', async () => {
    await using link = await connectThroughProxy()
    const { client, proxy } = link
    await client.query('set synchronous_commit = on')
    const hit = proxy.dropAnswer('COMMIT')
    await client.query('set synchronous_commit = off')
    await client.query('begin')
    await client.query('insert into entry values (200)')
    await expect(client.query('commit')).rejects.toThrow(/ECONNRESET|terminated/)

    expect(await hit).toMatchObject({ texts: ['commit'], tags: ['COMMIT'], bytes: 0 })
    expect(await isStored(200)).toBe(true)
    expect(proxy.counts.faults).toBe(1)
  })

  it('finds a statement by its comment, also when it was prepared before', async () => {
    await using link = await connectThroughProxy()
    const { client, proxy } = link
    const text = '/* holdfast:enqueue_jobs */ insert into entry values ($1::int)'
    await client.query({ name: 'enqueue', text, values: [300] })
    const hit = proxy.dropAnswer('/* holdfast:enqueue_jobs */')
    await expect(client.query({ name: 'enqueue', text, values: [301] })).rejects.toThrow(
      /ECONNRESET|terminated/,
    )
    expect(await hit).toMatchObject({ texts: [text], tags: ['INSERT 0 1'] })
    expect(await isStored(301)).toBe(true)
  })

  it('keeps back the right one of several in flight', async () => {
    await using link = await connectThroughProxy({ pipeline: true })
    const hit = link.proxy.dropAnswer('/* second */')
    const answers = await Promise.allSettled([
      link.client.query('insert into entry values (400) /* first */'),
      link.client.query('insert into entry values (401) /* second */'),
      link.client.query('select pg_sleep(5) /* third */'),
    ])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(await hit).toMatchObject({ tags: ['INSERT 0 1'] })
    expect(await isStored(401)).toBe(true)
  })

  it('can leave the client hanging instead of resetting it', async () => {
    await using link = await connectThroughProxy({ query_timeout: 300 })
    const hit = link.proxy.dropAnswer('insert into entry', 'hang')
    await expect(link.client.query('insert into entry values (500)')).rejects.toThrow(/timeout/)
    await hit
    expect(await isStored(500)).toBe(true)
    link.proxy.pass()
    expect(link.proxy.counts.resets).toBe(0)
  })
})

describe('a held answer', () => {
  it('comes when it is released, with what came after it; other connections go on', async () => {
    await using link = await connectThroughProxy()
    await using other = await connectThroughProxy()
    const { client, proxy } = link
    await client.query('listen held')
    const heard = once(client, 'notification')
    const held = proxy.holdAnswer('insert into entry')
    let isAnswered = false
    const inserted = client.query('insert into entry values (600)').then(() => {
      isAnswered = true
    })
    const { release, tags } = await held
    await other.client.query(`notify held, 'after'`)
    await other.client.query('select 1')

    expect([tags, isAnswered, await isStored(600)]).toEqual([['INSERT 0 1'], false, true])
    release()
    await inserted
    expect((await heard)[0]).toMatchObject({ payload: 'after' })
    expect((await client.query('select 2 as n')).rows).toEqual([{ n: 2 }])
    expect(proxy.counts).toMatchObject({ faults: 1, resets: 0 })
  })
})

describe('the target', () => {
  it('may be the address of a unix socket', async () => {
    const client = new Client({ connectionString: inject('postgresUrl') })
    await client.connect()
    const { rows } = await client.query<{ dir: string; port: string }>(
      `select current_setting('unix_socket_directories') as dir, current_setting('port') as port`,
    )
    await client.end()
    const [{ dir, port } = { dir: '', port: '' }] = rows
    await using proxy = await startProxy(
      `postgres://postgres@/postgres?host=${encodeURIComponent(dir)}&port=${port}`,
    )
    const through = new Client({ connectionString: proxy.url() })
    await through.connect()
    expect((await through.query('select inet_server_addr() as a')).rows).toEqual([{ a: null }])
    await through.end()
  })
})
