import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type CrashReport, everyKill } from '../../../src/testing/testing.ts'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import app, { mended, naive } from './programs/mail-app.ts'

const appFile = new URL('./programs/mail-app.ts', import.meta.url).pathname
const databases: TestDatabase[] = []
let delivered: string[] = []
let keys = new Set<string>()

const provider = http.createServer((request, response) => {
  const key = String(request.headers['idempotency-key'] ?? '')
  let body = ''
  request.on('data', (chunk: Buffer) => {
    body += String(chunk)
  })
  request.on('end', () => {
    if (key === '' || !keys.has(key)) delivered.push(body)
    keys.add(key)
    response.end()
  })
})

beforeAll(async () => {
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve))
  process.env['TEST_PROVIDER'] = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
})

afterAll(async () => {
  provider.close()
  for (const database of databases) await database.drop()
})

async function kill(job: typeof naive | typeof mended): Promise<CrashReport> {
  return await everyKill(
    app,
    job,
    { orderId: '42' },
    {
      appFile,
      database: async () => {
        const database = await createDatabase()
        databases.push(database)
        return database.url
      },
      setup: async ({ query }) => {
        delivered = []
        keys = new Set()
        await query('create table orders (id text, status text)')
        await query(`insert into orders values ('42', 'confirmed')`)
      },
      observe: async ({ query }) => ({ delivered, orders: await query('select * from orders') }),
    },
  )
}

it('finds, by SIGKILL of a process at each step, that a mail is sent twice', async () => {
  const report = await kill(naive)
  expect(report.expected).toEqual({ delivered: ['42'], orders: [{ id: '42', status: 'sent' }] })
  expect(report.points.map(({ name, attempts, differences }) => [name, attempts, ...differences])).toEqual([
    ['transaction, before it', 2, 'delivered: 2 times "42"'],
    ['transaction, before its commit', 2, 'delivered: 2 times "42"'],
    ['transaction committed', 2, 'delivered: 2 times "42"'],
    ['handler over, before its end is recorded', 2, 'delivered: 2 times "42"'],
  ])
}, 120_000)

it('passes the one with the ledger', async () => {
  const report = await kill(mended)
  expect(report.toString()).toContain('7 steps, dying at any of them does no harm')
  expect(report.points.map((point) => point.attempts)).toEqual([2, 2, 2, 2, 2, 2, 1])
}, 120_000)
