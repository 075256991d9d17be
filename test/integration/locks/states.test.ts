import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { App } from '../../../src/index.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

/** Records that a resource can have. `me` asks. */
const records = ['none', 'released', 'mine', 'mine, expired', 'of another', 'of another, expired'] as const
type RecordName = (typeof records)[number]

describeEachApp('one resource', ({ open }) => {
  let opened: EachApp
  let app: App
  beforeAll(async () => {
    opened = await open({ jobs: [], worker: false })
    app = opened.app
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  describe.each(['persistent', 'ephemeral'] as const)('%s', (durability) => {
    const twin = durability === 'ephemeral' ? '_ephemeral' : ''

    /** Makes the record; gives the token of its newest grant. */
    async function make(record: RecordName, resource: string): Promise<bigint> {
      if (record === 'none') return 0n
      const owner = record.startsWith('of') ? 'you' : 'me'
      const lock = await app.locks.acquire(resource, { owner, durability })
      if (record === 'released') await lock.release()
      if (record.endsWith('expired'))
        await opened.sql(
          `update holdfast.lock${twin} set expires_at = clock_timestamp() - interval '1 ms' where resource = $1`,
          [resource],
        )
      return lock.fencingToken ?? 0n
    }

    async function row(resource: string) {
      const [found] = await opened.sql<{ owner: string | null; token: string; expires_at: Date }>(
        `select owner, token::text, expires_at from holdfast.lock${twin} where resource = $1`,
        [resource],
      )
      return found
    }

    it.each(records)('record %s: a try', async (record) => {
      const resource = `try ${record}`
      const token = await make(record, resource)
      const before = await row(resource)
      const lock = await app.locks.acquire(resource, { owner: 'me', durability, leaseMs: 60_000 })
      const after = await row(resource)

      if (record === 'of another') {
        expect(lock).toMatchObject({ held: false, fencingToken: undefined, expiresAt: undefined })
        expect(after).toEqual(before)
      } else if (record === 'mine') {
        // The same grant, and the lease neither longer nor shorter.
        expect(lock).toMatchObject({ held: true, fencingToken: token, expiresAt: before?.expires_at })
        expect(after).toEqual(before)
      } else {
        expect(lock.held).toBe(true)
        expect(lock.fencingToken).toBeGreaterThan(token)
        expect(after).toMatchObject({ owner: 'me', token: String(lock.fencingToken) })
      }
    })

    it.each(records)('record %s: an extension', async (record) => {
      const resource = `extend ${record}`
      await make(record, resource)
      const before = await row(resource)
      const [answer] = await opened.sql<{ ends_at: Date | null }>(
        `select ends_at from holdfast.extend_lock${twin}('', $1, 'me', null, 5000)`,
        [resource],
      )
      const after = await row(resource)

      if (record === 'mine') {
        // Shorter than the 30 s before.
        expect(after?.expires_at.getTime()).toBeLessThan(before?.expires_at.getTime() ?? 0)
        expect(after).toMatchObject({ owner: 'me', token: before?.token, expires_at: answer?.ends_at })
      } else {
        expect(answer?.ends_at).toBeNull()
        expect(after).toEqual(before)
      }
    })

    it.each(records)('record %s: a release', async (record) => {
      const resource = `release ${record}`
      const token = await make(record, resource)
      const before = await row(resource)
      const [answer] = await opened.sql<{ answer: string }>(
        `select holdfast.release_lock${twin}('', $1, 'me', null) as answer`,
        [resource],
      )
      const after = await row(resource)

      if (record === 'mine' || record === 'mine, expired') {
        expect(answer?.answer).toBe('released')
        expect(after).toMatchObject({ owner: null, token: String(token) })
      } else {
        expect(answer?.answer).toBe('lost')
        expect(after).toEqual(before)
      }
    })

    it.each(records)('record %s: what is known of it', async (record) => {
      const resource = `info ${record}`
      const token = await make(record, resource)
      const info = await app.locks.info(resource, { durability })
      const { locks } = await app.locks.list({ durability, limit: 1000 })

      const live = record === 'mine' ? 'me' : record === 'of another' ? 'you' : undefined
      if (live === undefined) expect(info).toBeUndefined()
      else
        expect(info).toEqual({
          resource,
          tenant: '',
          durability,
          owner: live,
          fencingToken: token,
          acquiredAt: expect.any(Date),
          expiresAt: (await row(resource))?.expires_at,
        })
      expect(locks.find((lock) => lock.resource === resource)).toEqual(info)
    })
  })
})
