import { afterAll, beforeAll, expect, it } from 'vitest'
import type { KeyChange, Keys } from '../../../src/index.ts'
import { eventually } from '../../support/eventually.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

/** What a watch has told, and an end to it. */
class Watching {
  readonly changes: KeyChange[] = []
  readonly #controller = new AbortController()
  readonly #ended: Promise<void>
  readonly started: Promise<void>

  constructor(keys: Keys, watched: Parameters<Keys['watch']>[0], options: Parameters<Keys['watch']>[1] = {}) {
    const watch = keys.watch(watched, { ...options, signal: this.#controller.signal })
    this.started = watch.started
    this.#ended = (async () => {
      for await (const change of watch) this.changes.push(change)
    })()
  }

  async count(count: number): Promise<readonly string[]> {
    await eventually(`${count} changes`, () => this.changes.length >= count, { pollMs: 5 })
    return this.told()
  }

  told(): readonly string[] {
    return this.changes.map((change) => {
      if (change.kind === 'resync') return 'resync'
      const value = 'entry' in change ? ` ${change.entry.text()}` : ''
      return `${change.kind} ${change.key} ${change.revision}${value}`
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort()
    await this.#ended
  }
}

describeEachApp('watching keys', ({ open, kind }) => {
  let opened: EachApp
  let keys: Keys
  beforeAll(async () => {
    opened = await open({ jobs: [], worker: false })
    keys = opened.app.keys
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  for (const durability of ['persistent', 'ephemeral'] as const) {
    it(`tells every change of ${durability} keys once and in order, norev and expiry too, and nothing from before`, async () => {
      const o = { durability, tenant: 'told' }
      await keys.set('w/a', 'before', o)
      await using watching = new Watching(keys, 'w/', o)
      await watching.started
      await keys.set('w/a', 'one', o)
      await keys.set('w/a', 'two', { ...o, norev: true })
      await keys.set('other', 'x', o)
      await keys.set('w/b', 'x', { durability })
      await keys.extend('w/a', 60_000, o)
      await keys.delete('w/a', o)
      await keys.set('w/a', 'y', { ...o, ifPresent: true })
      await keys.set('w/b/c', 'short', { ...o, ttlMs: 1 })
      await eventually('the key has expired', async () => !(await keys.exists('w/b/c', o)), { pollMs: 2 })
      await opened.sql(`select holdfast.key_sweep($1, 100)`, [durability === 'ephemeral'])

      expect(await watching.count(6)).toEqual([
        'set w/a 1 one',
        'set w/a 2 two',
        'extended w/a 2 two',
        'deleted w/a 3',
        'set w/b/c 0 short',
        'expired w/b/c 0',
      ])
    })
  }

  it('watches one key, or a bucket', async () => {
    await using one = new Watching(keys, { key: 'b/k' })
    await using bucket = new Watching(keys, { bucket: 'b' })
    await one.started
    await bucket.started
    await keys.setMany(['b/k', 'b/k/deeper', 'b/kk', 'b'].map((key) => ({ key, value: key })))
    await keys.set('b/k', 'end')

    expect(await one.count(2)).toEqual(['set b/k 0 b/k', 'set b/k 1 end'])
    expect(await bucket.count(3)).toEqual(['set b/k 0 b/k', 'set b/kk 0 b/kk', 'set b/k 1 end'])
  })

  it('tells the changes of a transaction when it commits, and none of one that rolls back', async () => {
    await using watching = new Watching(keys, 'tx/')
    await watching.started
    await opened.app
      .transaction(async (tx) => {
        await keys.set('tx/undone', 'x', { tx })
        throw new Error('undo')
      })
      .catch(() => {})
    await opened.app.transaction(async (tx) => {
      await keys.set('tx/a', '1', { tx })
      await keys.set('tx/a', '2', { tx })
      await keys.set('tx/b', '1', { tx })
    })

    expect(await watching.count(3)).toEqual(['set tx/a 0 1', 'set tx/a 1 2', 'set tx/b 0 1'])
    expect((await keys.revisions('tx/a')).map(({ revision }) => revision)).toEqual([1n])
  })

  it('goes on behind a place, and tells to read afresh when the log has lost what came after it', async () => {
    await using first = new Watching(keys, 'from/')
    await first.started
    await keys.set('from/a', '1')
    await keys.set('from/a', '2', { norev: true })
    await keys.set('from/a', '3')
    await first.count(3)
    const place = first.changes[0]?.place as bigint
    await using second = new Watching(keys, 'from/', { from: place })
    const again = await second.count(2)
    await opened.sql(`select holdfast.key_trim(false, 0, 0, 100000, interval '0')`)
    await using third = new Watching(keys, 'from/', { from: place })
    await third.count(1)
    await keys.set('from/a', '4')

    expect(again).toEqual(['set from/a 1 2', 'set from/a 2 3'])
    expect(await third.count(2)).toEqual(['resync', 'set from/a 3 4'])
  })

  it('leaves nothing behind when the loop is left', async () => {
    const watch = keys.watch('left/')
    await watch.started
    await keys.set('left/a', '1')
    for await (const change of watch) {
      expect(change.kind).toBe('set')
      break
    }
    expect(await opened.sql(`select 1 from holdfast.key_watcher where prefix = 'left/'`)).toEqual([])
  })

  it.skipIf(kind === 'pglite')(
    'waits at a gap until its transaction ends, and passes one that stays',
    async () => {
      await using watching = new Watching(keys, 'gap/')
      await watching.started
      let release = () => {}
      const held = new Promise<void>((resolve) => {
        release = resolve
      })
      let written = () => {}
      const hasWritten = new Promise<void>((resolve) => {
        written = resolve
      })
      const slow = opened.app.transaction(async (tx) => {
        await keys.set('gap/slow', '1', { tx })
        written()
        await held
      })
      await hasWritten
      await keys.set('gap/fast', '1')
      await using late = new Watching(keys, 'gap/')
      await late.started
      await keys.set('gap/fast', '2')
      expect(watching.told()).toEqual([])
      release()
      await slow

      expect(await watching.count(3)).toEqual(['set gap/slow 0 1', 'set gap/fast 0 1', 'set gap/fast 1 2'])
      expect(await late.count(2)).toEqual(['set gap/slow 0 1', 'set gap/fast 1 2'])
    },
  )
})
