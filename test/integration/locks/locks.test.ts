import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AcquireOptions, type App, defineJob, LockLostError } from '../../../src/index.ts'
import { anything } from '../../faults/handlers.ts'
import { everything } from '../../support/everything.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

const guarded = defineJob({
  name: 'guarded',
  input: anything<{ resource: string; token: string }>(),
  idempotent: true,
  ...everything,
  maxAttempts: 1,
  handler: async (ctx, { resource, token }) =>
    await ctx.commit(async (tx) => {
      const other = await appOf().locks.acquire(`${resource} too`, { tx })
      await appOf().locks.assert(tx, resource, BigInt(token))
      return other.held
    }),
})
let appOf: () => App

describeEachApp('locks', ({ open }) => {
  let opened: EachApp
  let app: App
  beforeAll(async () => {
    opened = await open({ jobs: [guarded] })
    app = opened.app
    appOf = () => app
    await opened.sql('create table written (n int)')
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  const expire = async (resource: string) =>
    await opened.sql(
      `update holdfast.lock set expires_at = clock_timestamp() - interval '1 ms' where resource = $1`,
      [resource],
    )

  it('are granted to one, refused to the next, and granted anew with a larger token when released', async () => {
    const first = await app.locks.acquire('a')
    const second = await app.locks.acquire('a')
    expect(first.held).toBe(true)
    expect(first.signal.aborted).toBe(false)
    expect(second).toMatchObject({ held: false, fencingToken: undefined, resource: 'a' })
    expect(second.signal.reason).toMatchObject({ code: 'LOCK_LOST', why: 'not-acquired' })
    expect([await second.extend(1000), await second.release()]).toEqual([false, false])

    expect(await first.release()).toBe(true)
    expect(first.held).toBe(false)
    expect(first.signal.aborted).toBe(false)
    const third = await app.locks.acquire('a')
    expect(third.held).toBe(true)
    expect(third.fencingToken).toBeGreaterThan(first.fencingToken as bigint)
    expect(await first.release()).toBe(false)
    expect((await third.info())?.fencingToken).toBe(third.fencingToken)
  })

  it('are released by await using', async () => {
    {
      await using lock = await app.locks.acquire('using')
      expect(await app.locks.info('using')).toMatchObject({ owner: lock.owner })
    }
    expect(await app.locks.info('using')).toBeUndefined()
  })

  it('end with their leases: the signal aborts by the clock of the process, and nothing revives them', async () => {
    const lock = await app.locks.acquire('short', { leaseMs: 150 })
    expect(lock.held).toBe(true)
    await new Promise((resolve) => lock.signal.addEventListener('abort', resolve))
    expect(lock.held).toBe(false)
    expect(lock.signal.reason).toBeInstanceOf(LockLostError)
    expect(lock.signal.reason).toMatchObject({
      why: 'expired',
      resource: 'short',
      fencingToken: lock.fencingToken,
    })
    expect(await lock.extend(1000)).toBe(false)
    // It is still this one's to release, as nobody took it.
    expect(await lock.release()).toBe(true)
    expect(await lock.release()).toBe(false)
  })

  it('are extended to a later and to an earlier end', async () => {
    const lock = await app.locks.acquire('extended', { leaseMs: 5000 })
    expect(await lock.extend(60_000)).toBe(true)
    const later = (await lock.info())?.expiresAt
    expect(lock.expiresAt).toEqual(later)
    expect(await lock.extend(100)).toBe(true)
    expect(lock.expiresAt?.getTime()).toBeLessThan(later?.getTime() ?? 0)
    await new Promise((resolve) => lock.signal.addEventListener('abort', resolve))
    expect(lock.signal.reason).toMatchObject({ why: 'expired' })
  })

  it('of a past owner are lost: an extension says so, and the signal aborts', async () => {
    const lock = await app.locks.acquire('past')
    await expire('past')
    const next = await app.locks.acquire('past')
    expect(next.held).toBe(true)
    expect(await lock.extend(1000)).toBe(false)
    expect(lock.held).toBe(false)
    expect(lock.signal.reason).toMatchObject({ why: 'gone' })
    expect(await lock.release()).toBe(false)
    expect((await next.info())?.owner).toBe(next.owner)
  })

  it('are had again by the same owner, with the same token, and freed by whichever handle', async () => {
    const one = await app.locks.acquire('again', { owner: 'me', leaseMs: 60_000 })
    const two = await app.locks.acquire('again', { owner: 'me', leaseMs: 1000 })
    const old = await app.locks.acquire('again', { owner: 'me' })
    expect(two).toMatchObject({ held: true, fencingToken: one.fencingToken, expiresAt: one.expiresAt })
    expect(await two.release()).toBe(true)
    expect(await one.extend(1000)).toBe(false)
    // A new grant of the same owner is not the old one's.
    const three = await app.locks.acquire('again', { owner: 'me' })
    expect(await old.extend(600_000)).toBe(false)
    expect((await three.info())?.expiresAt).toEqual(three.expiresAt)
    expect(await one.release()).toBe(false)
    expect((await three.info())?.fencingToken).toBe(three.fencingToken)
  })

  it('of tenants and durabilities have nothing to do with each other', async () => {
    const places = [
      {},
      { tenant: 'x' },
      { durability: 'ephemeral' },
      { tenant: 'x', durability: 'ephemeral' },
    ] as const
    const locks = []
    for (const place of places) locks.push(await app.locks.acquire('apart', place))
    expect(locks.map((lock) => lock.held)).toEqual([true, true, true, true])
    for (const [index, place] of places.entries())
      expect((await app.locks.info('apart', place))?.fencingToken).toBe(locks[index]?.fencingToken)
  })

  it('are listed in the order of their bytes, page by page', async () => {
    const names = ['b', 'a', 'é', 'A', '😀', 'a/b', 'z'].map((name) => `list ${name}`)
    for (const name of names) await app.locks.acquire(name, { tenant: 'list' })
    await (await app.locks.acquire('list free', { tenant: 'list' })).release()
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await app.locks.list({
        tenant: 'list',
        limit: 3,
        ...(after === undefined ? {} : { after }),
      })
      expect(page.locks.length).toBeLessThanOrEqual(3)
      seen.push(...page.locks.map((lock) => lock.resource))
      after = page.next ?? undefined
    } while (after !== undefined)
    expect(seen).toEqual([...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))))
  })

  it('refuse what cannot be right before anything is sent', async () => {
    const bad: readonly (readonly [unknown, AcquireOptions | object, string])[] = [
      ['', {}, 'resource'],
      [undefined, {}, 'resource'],
      ['x'.repeat(1025), {}, 'resource'],
      ['a\0b', {}, 'resource'],
      ['\ud800', {}, 'resource'],
      ['x', { leaseMs: 99 }, 'leaseMs'],
      ['x', { leaseMs: Number.NaN }, 'leaseMs'],
      ['x', { waitMs: -1 }, 'waitMs'],
      ['x', { waitMs: 1, retryMs: 0 }, 'retryMs'],
      ['x', { owner: '' }, 'owner'],
      ['x', { tenant: ' ' }, 'tenant'],
      ['x', { durability: 'eternal' }, 'durability'],
      ['x', { renew: 'yes' }, 'renew'],
      ['x', { renew: true, tx: {} }, 'renew'],
      ['x', { signal: {} }, 'signal'],
    ]
    for (const [resource, options, field] of bad)
      await expect(app.locks.acquire(resource as string, options), field).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        field,
      })
    const lock = await app.locks.acquire('good')
    for (const ms of [0, Number.NaN, undefined as never, 1e12])
      await expect(lock.extend(ms)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', field: 'ms' })
    await expect(app.locks.forceRelease('good', { actor: 'me', reason: '' })).rejects.toMatchObject({
      field: 'reason',
    })
    await expect(app.locks.forceRelease('good', { reason: 'x' } as never)).rejects.toMatchObject({
      field: 'actor',
    })
    await expect(app.locks.list({ after: 'x' })).rejects.toMatchObject({ field: 'after' })
    await expect(app.locks.assert(undefined, 'good', 1n)).rejects.toMatchObject({
      code: 'TRANSACTION_REQUIRED',
    })
    await expect(app.locks.assert(undefined, 'good', undefined as never)).rejects.toMatchObject({
      field: 'token',
    })
    expect(lock.held).toBe(true)
  })

  it('are taken from their holder by force, with an audit; the token is refused from then on', async () => {
    const lock = await app.locks.acquire('forced')
    const released = await app.locks.forceRelease('forced', { actor: 'anna', reason: 'the host is gone' })
    expect(released).toEqual({ owner: lock.owner, fencingToken: lock.fencingToken })
    expect(
      await opened.sql(
        `select actor, action, subject, note from holdfast.audit where subject like '%forced%'`,
      ),
    ).toEqual([
      {
        actor: 'anna',
        action: 'lock-release',
        subject: 'lock ["","forced","persistent"]',
        note: 'the host is gone',
      },
    ])
    await expect(
      app.transaction(async (tx) => await app.locks.assert(tx, 'forced', lock.fencingToken as bigint)),
    ).rejects.toMatchObject({
      code: 'LOCK_LOST',
      resource: 'forced',
      fencingToken: lock.fencingToken,
      why: 'gone',
    })
    expect(await lock.extend(1000)).toBe(false)
    expect(lock.signal.reason).toMatchObject({ why: 'gone' })
    expect(await app.locks.forceRelease('forced', { actor: 'anna', reason: 'again' })).toBeUndefined()
  })

  describe('in a transaction', () => {
    it('are held after its commit, and were nobody’s if it rolls back', async () => {
      const kept = await app.transaction(async (tx) => {
        const lock = await app.locks.acquire('tx', { tx })
        expect(lock.held).toBe(true)
        return lock
      })
      expect((await app.locks.info('tx'))?.fencingToken).toBe(kept.fencingToken)
      expect(await kept.release()).toBe(true)

      const undone = app.transaction(async (tx) => {
        await app.locks.acquire('tx', { tx })
        throw new Error('back')
      })
      await expect(undone).rejects.toThrow('back')
      expect(await app.locks.info('tx')).toBeUndefined()
      const next = await app.locks.acquire('tx')
      expect(next.fencingToken).toBeGreaterThan(kept.fencingToken as bigint)
    })

    it('are undone by a rollback to a savepoint, and what is around it goes on', async () => {
      await app.transaction(async (tx) => {
        await tx.query('savepoint s')
        expect((await app.locks.acquire('savepoint', { tx })).held).toBe(true)
        await tx.query('rollback to savepoint s')
        expect(await app.locks.info('savepoint', { tx })).toBeUndefined()
        expect((await app.locks.acquire('savepoint two', { tx })).held).toBe(true)
      })
      expect(await app.locks.info('savepoint')).toBeUndefined()
      expect(await app.locks.info('savepoint two')).toMatchObject({ resource: 'savepoint two' })
    })

    it('are extended and released with it', async () => {
      const lock = await app.locks.acquire('tx release')
      const undone = app.transaction(async (tx) => {
        expect(await lock.extend(60_000, { tx })).toBe(true)
        expect(await lock.release({ tx })).toBe(true)
        throw new Error('back')
      })
      await expect(undone).rejects.toThrow('back')
      expect((await app.locks.info('tx release'))?.fencingToken).toBe(lock.fencingToken)
      expect(await app.transaction(async (tx) => await lock.release({ tx }))).toBe(true)
      expect(await app.locks.info('tx release')).toBeUndefined()
    })

    it('are not counted on for longer by an extension that rolls back', async () => {
      const lock = await app.locks.acquire('tx extend', { leaseMs: 1000 })
      const end = lock.expiresAt
      const undone = app.transaction(async (tx) => {
        expect(await lock.extend(600_000, { tx })).toBe(true)
        throw new Error('back')
      })
      await expect(undone).rejects.toThrow('back')
      expect(lock.expiresAt).toEqual(end)
      await new Promise((resolve) => lock.signal.addEventListener('abort', resolve))
      expect(lock.signal.reason).toMatchObject({ why: 'expired' })
    })

    it('leave it usable when they are refused', async () => {
      await app.locks.acquire('taken')
      await app.transaction(async (tx) => {
        const lock = await app.locks.acquire('taken', { tx, waitMs: 50, retryMs: 10 })
        expect(lock.held).toBe(false)
        await tx.query('insert into written values (1)')
      })
      expect(await opened.sql('select n from written where n = 1')).toEqual([{ n: 1 }])
    })

    it('refuse a call that would not be part of it', async () => {
      await app.transaction(async (tx) => {
        await expect(app.locks.acquire('outside')).rejects.toMatchObject({ code: 'OUTSIDE_TRANSACTION' })
        await expect(app.locks.info('outside')).rejects.toMatchObject({ code: 'OUTSIDE_TRANSACTION' })
        await tx.query('select 1')
      })
    })

    it('that rolls back after a stale assertion writes nothing, however the error is treated', async () => {
      const stale = await app.locks.acquire('stale')
      await expire('stale')
      const outcome = app.transaction(async (tx) => {
        await app.locks.assert(tx, 'stale', stale.fencingToken as bigint).catch(() => {})
        await tx.query('insert into written values (2)').catch(() => {})
      })
      await expect(outcome).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
      expect(await opened.sql('select n from written where n = 2')).toEqual([])
    })

    it('are asserted by SQL too, with an SQLSTATE of their own', async () => {
      const lock = await app.locks.acquire('by sql', { tenant: 't' })
      await app.transaction(async (tx) => {
        await tx.query(`select holdfast.assert_lock('by sql', $1, 't')`, [String(lock.fencingToken)])
        await tx.query('insert into written values (3)')
      })
      const wrong = app.transaction(
        async (tx) =>
          await tx.query(`select holdfast.assert_lock('by sql', $1)`, [String(lock.fencingToken)]),
      )
      await expect(wrong).rejects.toMatchObject({ code: 'HF010' })
      const none = app.transaction(
        async (tx) => await tx.query(`select holdfast.assert_lock('by sql', null, 't')`),
      )
      await expect(none).rejects.toMatchObject({ code: 'HF010' })
      expect(await opened.sql('select n from written where n = 3')).toEqual([{ n: 3 }])
    })

    it('work inside ctx.commit: a job whose lock is lost is not completed', async () => {
      const lock = await app.locks.acquire('job')
      const token = String(lock.fencingToken)
      const good = await app.enqueue(guarded, { resource: 'job', token })
      expect(await app.job(good.id).wait({ timeoutMs: 20_000 })).toMatchObject({
        state: 'completed',
        result: true,
      })
      expect(await app.locks.info('job too')).toMatchObject({ resource: 'job too' })
      await lock.release()
      const bad = await app.enqueue(guarded, { resource: 'job', token })
      expect(await app.job(bad.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'discarded' })
    })
  })
})
