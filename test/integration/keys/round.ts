import { expect } from 'vitest'
import type { App, KeyChange } from '../../../src/index.ts'

/** One of everything that there is of keys, whose answers no driver and no setting may change. */
export async function keysRound(app: App): Promise<void> {
  const { keys } = app
  for (const durability of ['persistent', 'ephemeral'] as const) {
    const o = { durability, tenant: 'é\\"\'' }
    const key = 'round/é\\x41"\'{},😀'
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    const controller = new AbortController()
    const watch = keys.watch('round/', { ...o, signal: controller.signal })
    await watch.started

    expect(await keys.set(key, bytes, { ...o, ttlMs: 3_600_000 })).toMatchObject({ ok: true, revision: 0n })
    const entry = await keys.get(key, o)
    expect([...(entry?.value ?? [])]).toEqual([...bytes])
    expect(entry?.expiresAt?.getTime()).toBeGreaterThan((entry?.modifiedAt.getTime() ?? 0) + 3_590_000)
    const hold = await keys.hold('round', o)
    expect(await keys.set(key, '\\x00', { ...o, ifValue: bytes, ifRevision: 0n })).toMatchObject({
      ok: true,
      revision: 1n,
      expiresAt: null,
    })
    const refused = await keys.set(key, 'x', { ...o, ifAbsent: true })
    expect(!refused.ok && refused.current?.text()).toBe('\\x00')
    expect((await keys.get(key, { ...o, asOf: hold }))?.value.length).toBe(256)
    expect((await keys.get(key, { ...o, atRevision: 0n }))?.value.length).toBe(256)
    await hold.release()
    expect(await keys.extend(key, 60_000, o)).toMatchObject({ ok: true, revision: 1n })
    expect((await keys.increment('round/n', -5n, o)).value).toBe(-5n)
    const many = [
      { key: 'round/m', value: new Uint8Array([92, 0]) },
      { key: 'round/n', value: '1', ifAbsent: true },
    ]
    expect((await keys.setMany(many, o)).map(({ ok }) => ok)).toEqual([true, false])
    expect((await keys.list({ prefix: 'round/', limit: 2, ...o })).entries.map((each) => each.key)).toEqual([
      'round/m',
      'round/n',
    ])
    expect((await keys.delete('round/m', o)).ok).toBe(true)
    const [m, n] = await keys.getMany(['round/m', 'round/n'], o)
    expect([m, n?.integer()]).toEqual([undefined, -5n])
    expect((await keys.revisions(key, o)).map(({ revision }) => revision)).toEqual([1n, 0n])

    const changes: KeyChange[] = []
    for await (const change of watch) {
      changes.push(change)
      if (changes.length === 6) break
    }
    expect(changes.map((change) => change.kind)).toEqual(['set', 'set', 'extended', 'set', 'set', 'deleted'])
    const [first] = changes
    expect(first?.kind === 'set' && first.entry.value.length).toBe(256)
  }
}
