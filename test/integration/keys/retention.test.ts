import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Keys } from '../../../src/index.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

describeEachApp('keeping and forgetting keys', ({ open }) => {
  let opened: EachApp
  let keys: Keys
  beforeAll(async () => {
    opened = await open({ jobs: [], worker: false, retention: { keyDays: 10, keyChanges: 5 } })
    keys = opened.app.keys
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  const log = (durability: string) => `holdfast.${durability === 'ephemeral' ? 'ephemeral_' : ''}key_change`
  /** As if the changes of a key had been made so long ago. */
  const age = async (key: string, interval: string, durability = 'persistent') =>
    await opened.sql(
      `update ${log(durability)} set changed_at = changed_at - $2::interval, modified_at = modified_at - $2::interval where key = $1`,
      [key, interval],
    )
  const trim = async (days: number, changes: number, durability = 'persistent') => {
    for (let looked = 1; looked > 0; ) {
      const [row] = await opened.sql<{ looked: number }>(
        `select holdfast.key_trim($1, $2, $3, 100) as looked`,
        [durability === 'ephemeral', days, changes],
      )
      looked = row?.looked === 100 ? 1 : 0
    }
  }
  const revisionsOf = async (key: string, durability: 'persistent' | 'ephemeral' = 'persistent') =>
    (await keys.revisions(key, { durability })).map(({ revision }) => Number(revision))

  it('takes its retention from the application', () => {
    expect(opened.app.composition.retention).toMatchObject({ keyDays: 10, keyChanges: 5 })
  })

  for (const durability of ['persistent', 'ephemeral'] as const) {
    it(`forgets ${durability} values that were followed longer ago than the days, or by more changes, never the newest`, async () => {
      const o = { durability }
      for (let round = 0; round < 6; round += 1) {
        await keys.set('trim/old', `${round}`, o)
        await keys.set('trim/many', `${round}`, o)
      }
      await trim(1, 2, durability)
      const young = await revisionsOf('trim/old', durability)
      await age('trim/old', '3 days', durability)
      await keys.set('trim/old', 'now', o)
      await age('trim/many', '2 hours', durability)
      await trim(1, 0, durability)
      const byDays = await revisionsOf('trim/old', durability)
      await trim(0, 2, durability)
      const byCount = await revisionsOf('trim/many', durability)

      expect(young).toEqual([5, 4, 3, 2, 1, 0])
      expect(byDays).toEqual([6, 5])
      expect(byCount).toEqual([5, 4, 3])
      expect((await keys.get('trim/many', o))?.text()).toBe('5')
      expect(await keys.set('trim/many', 'x', o)).toMatchObject({ revision: 6n })
    })
  }

  it('forgets values of norev after an hour, and keeps what retention 0 keeps for ever', async () => {
    await keys.set('norev/a', '1')
    await keys.set('norev/a', '2', { norev: true })
    await keys.set('norev/a', '3')
    await age('norev/a', '400 days')
    await trim(0, 0)

    expect(
      await opened.sql(`select revision::int from holdfast.key_change where key = 'norev/a' order by place`),
    ).toEqual([{ revision: 0 }, { revision: 2 }])
  })

  it('keeps what a live hold reads, of now or of a time, and forgets it when the hold has ended', async () => {
    await keys.set('held/a', 'one')
    await keys.set('held/t', 'one')
    await age('held/t', '9 days')
    await keys.set('held/t', 'two')
    await age('held/t', '5 days')
    const [row] = await opened.sql<{ at: string }>(
      `select (extract(epoch from now() - interval '10 days') * 1000)::int8::text as at`,
    )
    const hold = await keys.hold('exact')
    const past = await keys.hold('past', { at: new Date(Number(row?.at)) })
    await keys.set('held/a', 'two')
    await age('held/a', '5 days')
    await trim(1, 1)
    const held = await keys.get('held/a', { asOf: hold })
    const then = await keys.get('held/t', { asOf: past })
    await hold.release()
    await past.release()
    await trim(1, 1)

    expect(held?.text()).toBe('one')
    expect(then?.text()).toBe('one')
    expect(await revisionsOf('held/a')).toEqual([1])
    expect(await revisionsOf('held/t')).toEqual([1])
  })

  it('marks expired keys as such, and none that lives when it is looked at', async () => {
    await keys.set('sweep/gone', 'x', { ttlMs: 60_000 })
    await keys.set('sweep/live', 'x', { ttlMs: 60_000 })
    await opened.sql(
      `update holdfast.key_value set expires_at = clock_timestamp() - interval '1 s' where key = 'sweep/gone'`,
    )
    await opened.sql(`select holdfast.key_sweep(false, 100)`)

    expect(
      await opened.sql(`select key, deleted from holdfast.key_value where key like 'sweep/%' order by key`),
    ).toEqual([
      { key: 'sweep/gone', deleted: true },
      { key: 'sweep/live', deleted: false },
    ])
    expect((await keys.get('sweep/gone', { atRevision: 0n }))?.text()).toBe('x')
    expect(await keys.set('sweep/gone', 'y', { ifAbsent: true, ifRevision: 0n })).toMatchObject({
      ok: true,
      revision: 1n,
    })
  })
})
