import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { type App, defineApp } from '../../src/index.ts'
import { note } from '../integration/homes.ts'

/** Row 72: a secret in any spelling of an address is told nowhere. */
const SECRET = 'S3cret'
const spellings = [
  `postgres://u:${SECRET}@127.0.0.1:1/db`,
  `postgresql://u:${SECRET}@127.0.0.1:1/db`,
  `postgress://u:${SECRET}@127.0.0.1:1/db`,
  `POSTGRES://u:${SECRET}@127.0.0.1:1/db`,
  `postgres:/u:${SECRET}@127.0.0.1:1/db`,
  `postgres:u:${SECRET}@127.0.0.1:1/db`,
  `jdbc:postgresql://127.0.0.1:1/db?user=u&password=${SECRET}`,
  `jdbc:postgresql://u:${SECRET}@127.0.0.1:1/db`,
  `postgres://u:a@${SECRET}@127.0.0.1:1/db`,
  `postgres://u:%41${SECRET}%@127.0.0.1:1/db`,
  `postgres://u:%2F${SECRET}%40@127.0.0.1:1/db`,
  `postgres://u:/${SECRET}?#@127.0.0.1:1/db`,
  `postgres://u:${SECRET}@127.0.0.1:notaport/db`,
  `postgres://u:${SECRET}@/db?host=/nowhere`,
  `postgres://127.0.0.1:1/db?user=u&password=${SECRET}`,
  `postgres://u:${SECRET}@127.0.0.1:1,127.0.0.1:2/db`,
  `  postgres://u:${SECRET}@127.0.0.1:1/db`,
  `host=127.0.0.1 port=1 user=u password=${SECRET}`,
  `u:${SECRET}@127.0.0.1`,
  `pglite://u:${SECRET}@127.0.0.1`.replace('pglite', 'pg-lite'),
  `mysql://u:${SECRET}@127.0.0.1/db`,
  SECRET,
]

/** All that a person, a logger or a serialiser could get out of something. */
function everything(value: unknown): string {
  const seen = new Set<unknown>()
  const parts = [inspect(value, { depth: 10, showHidden: true, getters: true }), String(value)]
  const walk = (item: unknown, depth: number): void => {
    if (typeof item !== 'object' || item === null || seen.has(item) || depth > 6) return
    seen.add(item)
    for (const key of Reflect.ownKeys(item)) {
      const member: unknown = Reflect.get(item, key)
      parts.push(String(key), typeof member === 'string' ? member : inspect(member, { depth: 0 }))
      walk(member, depth + 1)
    }
  }
  walk(value, 0)
  return parts.join('\n')
}

const holdsSecret = (text: string) => /S3cret|S%33cret/i.test(text)

describe('a password in the address of the database', () => {
  it.each(spellings)('is in no error, property, event or log line (spelling %#)', async (database) => {
    const told: string[] = []
    const logger = Object.fromEntries(
      ['debug', 'info', 'warn', 'error'].map((level) => [
        level,
        (...args: unknown[]) => told.push(everything(args)),
      ]),
    )
    let app: App | undefined
    try {
      app = defineApp({
        name: 'test',
        database,
        jobs: [note],
        logger: logger as never,
        queues: { default: {} },
      })
      app.events.on('worker.error', (event) => void told.push(everything(event)))
      app.events.on('wakeup.degraded', (event) => void told.push(everything(event)))
      const calls = [
        async () => await app?.enqueue(note, 1),
        async () => await app?.enqueue(note, 1, { uniqueKey: 'k' }),
        async () => await app?.migrate(),
        async () => await app?.worker().start(),
        async () => await app?.transaction(async () => {}),
        async () => await app?.job('1').get(),
      ]
      for (const call of calls) {
        await call().then(
          () => told.push('worked'),
          (error: unknown) => told.push(everything(error)),
        )
      }
    } catch (error) {
      told.push(everything(error))
    } finally {
      await app?.close().catch((error: unknown) => told.push(everything(error)))
    }

    expect(told.length).toBeGreaterThan(0)
    expect(told).not.toContain('worked')
    expect(told.filter(holdsSecret)).toEqual([])
  })

  it('is found by this test where it is', () => {
    expect(holdsSecret(everything({ deep: [{ cause: new Error(`at ${SECRET}`) }] }))).toBe(true)
  })

  it('is masked in what a handler threw', async () => {
    const { errorToJson } = await import('../../src/base/error-text.ts')
    for (const spelling of spellings.slice(0, 6)) {
      const thrown = new Error(`cannot reach ${spelling.trim()}`, { cause: new Error(spelling) })
      expect(holdsSecret(errorToJson(thrown)), spelling).toBe(false)
    }
  })
})
