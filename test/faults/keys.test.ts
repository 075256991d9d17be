import { expect, it } from 'vitest'
import { startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { defineApp, type KeyChange } from '../../src/index.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

it('a server that is killed empties ephemeral keys, whose revisions and places go on; persistent ones stay', async () => {
  await using server = await startPostgres({ settings: volatileSettings })
  await using db = await createDatabase({ server: server.url() })
  await db.sql(`alter database ${db.name} set synchronous_commit = off`)
  const app = defineApp({ name: 'keys', database: db.url, jobs: [] })
  const { keys } = app
  const ephemeral = { durability: 'ephemeral' } as const
  const controller = new AbortController()
  const watch = keys.watch('', { ...ephemeral, signal: controller.signal })
  const changes: KeyChange[] = []
  const ended = (async () => {
    for await (const change of watch) changes.push(change)
  })()
  await watch.started
  const revisions: bigint[] = []
  const set = async () => {
    const answer = await keys.set('e', 'x', ephemeral)
    revisions.push(answer.revision)
  }
  for (let crash = 0; crash < 3; crash += 1) {
    await set()
    await set()
    await keys.set('other', 'x', { ...ephemeral, ifAbsent: true })
    const sets = 3 * (crash + 1)
    await eventually('it is told', () => changes.filter(({ kind }) => kind === 'set').length === sets, {
      pollMs: 5,
    })
    const kept = await keys.increment('p', 1n)
    await db.sql('checkpoint')
    await server.kill()
    await server.restart()
    const gone = await eventually('the server is back', async () => {
      const entry = await keys.get('e', ephemeral).catch(() => 'down' as const)
      return entry === 'down' ? false : { entry }
    })
    expect(gone && gone.entry).toBeUndefined()
    expect((await keys.get('p'))?.revision).toBe(kept.revision)
    await eventually(
      'it tells to read afresh',
      () => changes.filter(({ kind }) => kind === 'resync').length > crash,
    )
  }
  await set()
  const last = await eventually('the last change', () => {
    const change = changes.at(-1)
    return change?.kind === 'set' && change.revision === revisions.at(-1) && change
  })
  controller.abort()
  await ended
  await app.close()

  expect(revisions).toEqual([...new Set(revisions)].sort((a, b) => (a < b ? -1 : 1)))
  expect(last && last.place).toBeGreaterThan(1n << 40n)
  const places = changes.map(({ place }) => place)
  expect(places).toEqual([...places].sort((a, b) => (a < b ? -1 : 1)))
})
