import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type PartialId, Storage, type TenantSpace } from '../../examples/export/storage.ts'
import { sweepPartials } from '../../examples/export/sweep.ts'

let root = ''
beforeEach(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'holdfast-export-'))
})
afterEach(async () => await fs.rm(root, { recursive: true }))

function spaceOf(tenant: string, deployment = 'live'): TenantSpace {
  return new Storage({ root, deployment }).of(tenant)
}

function partialOf(key: string, jobId = '7', fencingToken = '1'): PartialId {
  return { key, jobId, fencingToken }
}

async function write(space: TenantSpace, id: PartialId, text: string): Promise<void> {
  const file = await space.createPartial(id)
  await file.append(text)
  await file.close()
}

async function publish(space: TenantSpace, key: string, text: string): Promise<void> {
  const id = partialOf(key)
  await write(space, id, text)
  await space.publish(id)
}

/** Makes every partial file of the root look as if it had been left alone for so long. */
async function age(ms: number): Promise<void> {
  for (const file of await fs.readdir(root, { recursive: true })) {
    if (!file.endsWith('.partial')) continue
    const at = new Date(Date.now() - ms)
    await fs.utimes(path.join(root, file), at, at)
  }
}

describe('the storage of an export', () => {
  it('shows readers nothing of a file under construction, and all of it once it is published', async () => {
    const space = spaceOf('a')
    const id = partialOf('exports/2026-11.csv')

    await write(space, id, 'one\ntwo\n')
    expect(await space.list()).toEqual([])
    await expect(space.read(id.key)).rejects.toThrow('ENOENT')
    expect(await fs.readdir(path.join(root, 'live/a/partial'))).toEqual(['exports%2F2026-11.csv.7-1.partial'])

    await space.publish(id)
    expect(await space.list()).toEqual(['exports/2026-11.csv'])
    expect(await space.read(id.key)).toBe('one\ntwo\n')
  })

  it('publishes once, however often it is told to, and never what is missing', async () => {
    const space = spaceOf('a')
    await publish(space, 'x.csv', 'whole')
    await space.publish(partialOf('x.csv'))
    expect(await space.read('x.csv')).toBe('whole')
    await expect(space.publish(partialOf('y.csv'))).rejects.toThrow('ENOENT')
  })

  it('goes on from the bytes that a checkpoint speaks of, and cuts off what came after', async () => {
    const space = spaceOf('a')
    const earlier = partialOf('x.csv', '7', '1')
    await write(space, earlier, 'one\ntwo\nthr')

    const later = partialOf('x.csv', '7', '2')
    const file = await space.continuePartial(later, { id: earlier, bytes: 8 })
    await file?.append('three\n')
    await file?.close()
    await space.publish(later)

    expect(await space.read('x.csv')).toBe('one\ntwo\nthree\n')
    expect(await space.continuePartial(partialOf('x.csv', '7', '3'), { id: later, bytes: 8 })).toBeUndefined()
  })

  it.each([
    '',
    '/etc/passwd',
    'C:\\x',
    'c:/x',
    '..',
    '.',
    '../b/published/x',
    'a/../../x',
    'a/./b',
    'a//b',
    'a/',
    '/',
    'a\\..\\b',
    'a/…/...',
    'a\0b',
    '\uD800',
  ])('refuses the key %j before anything is touched', async (key) => {
    const space = spaceOf('a')
    await expect(space.read(key)).rejects.toThrow(expect.objectContaining({ name: 'InvalidNameError' }))
    await expect(space.createPartial(partialOf(key))).rejects.toThrow(
      expect.objectContaining({ name: 'InvalidNameError' }),
    )
    expect(await fs.readdir(root)).toEqual([])
  })

  it('keeps the same key of two tenants apart, whatever the tenants are called', async () => {
    const tenants = ['a', 'a/b', 'A', 'a%2Fb', 'a%2fb', 'a.b', '..', '.', '../a', 'a ', 'ä', 'a\u0308']
    for (const tenant of tenants) await publish(spaceOf(tenant), 'b/x.csv', `of ${tenant}`)
    for (const tenant of tenants) {
      expect(await spaceOf(tenant).list()).toEqual(['b/x.csv'])
      expect(await spaceOf(tenant).read('b/x.csv')).toBe(`of ${tenant}`)
    }
    // Nothing has left the deployment's folder.
    expect(await fs.readdir(root)).toEqual(['live'])
    expect(await fs.readdir(path.join(root, 'live'))).toHaveLength(tenants.length)
  })

  it('keeps deployments apart that share a folder', async () => {
    await publish(spaceOf('a', 'live'), 'x.csv', 'live')
    await publish(spaceOf('a', 'live/a'), 'x.csv', 'other')
    expect(await spaceOf('a', 'live').read('x.csv')).toBe('live')
    expect(await spaceOf('a', 'live/a').read('x.csv')).toBe('other')
  })

  it('lets one key be the beginning of another', async () => {
    const space = spaceOf('a')
    await publish(space, 'x', '1')
    await publish(space, 'x/y', '2')
    await publish(space, 'x.7-1.partial', '3')
    expect(await space.list()).toEqual(['x', 'x.7-1.partial', 'x/y'])
    expect(await space.partials()).toEqual([])
  })
})

describe('the sweep', () => {
  const GRACE_MS = 60_000
  const hasEnded = async (jobId: string) => jobId !== 'none' && jobId !== '99'

  it('removes what was left alone for the grace time and has no job any more, and nothing else', async () => {
    const space = spaceOf('a')
    const other = spaceOf('a/b')
    await publish(space, 'published.csv', 'stays')
    await write(space, partialOf('left.csv', '7'), 'goes')
    await write(space, partialOf('unfinished.csv', '99'), 'stays')
    await write(other, partialOf('left.csv', '7'), 'stays')
    await age(2 * GRACE_MS)
    await write(space, partialOf('young.csv', '8'), 'stays')

    const removed = await sweepPartials(space, { graceMs: GRACE_MS, hasEnded })

    expect(removed).toEqual([partialOf('left.csv', '7')])
    expect((await space.partials()).map(({ id }) => id.key).sort()).toEqual(['unfinished.csv', 'young.csv'])
    expect(await space.list()).toEqual(['published.csv'])
    expect((await other.partials()).map(({ id }) => id.key)).toEqual(['left.csv'])
  })

  it('of a tenant without any file removes nothing', async () => {
    expect(await sweepPartials(spaceOf('nobody'), { graceMs: 0, hasEnded })).toEqual([])
    expect(await fs.readdir(root)).toEqual([])
  })
})
