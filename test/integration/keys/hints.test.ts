import { expect, it } from 'vitest'
import { hintChannelOf } from '../../../src/base/channel.ts'
import { defineApp } from '../../../src/index.ts'
import { createDatabase } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'

it.each(['persistent', 'ephemeral'] as const)(
  'a set of a %s key wakes its watchers, whether the key is new or not, and nobody else’s',
  async (durability) => {
    await using db = await createDatabase()
    const app = defineApp({ name: 'test', database: db.url, jobs: [] })
    const listener = await db.connect()
    const heard: (string | undefined)[] = []
    listener.on('notification', ({ payload }) => heard.push(payload))
    await listener.query(`listen "${hintChannelOf('holdfast')}"`)
    await db.sql(`select holdfast.key_watch_keep(gen_random_uuid(), $1, '', 'watched/', 60000)`, [
      durability === 'ephemeral',
    ])

    await app.keys.set('other/a', '1', { durability })
    await app.keys.set('other/a', '2', { durability })
    await app.keys.set('watched/a', '1', { durability })
    await eventually('the hint of a new key', () => heard.length === 1)
    await app.keys.set('watched/a', '2', { durability })
    await eventually('the hint of a known key', () => heard.length === 2)
    await app.keys.set('watched/a', '3', {
      durability,
      ifRevision: (await app.keys.get('watched/a', { durability }))?.revision,
    })
    await eventually('the hint of a condition', () => heard.length === 3)
    expect(new Set(heard)).toEqual(new Set(['keys']))
    await app.close()
  },
)
