import { expect, it } from 'vitest'
import {
  defineJob,
  EffectBusyError,
  EffectTimeoutError,
  EffectUncertainError,
  notHappened,
} from '../../../src/index.ts'
import { aborted, anything, Gate } from '../../faults/handlers.ts'
import { eventually } from '../../support/eventually.ts'
import { everything } from '../../support/everything.ts'
import { describeEachApp } from './each-app.ts'

const failing = () => {
  throw new Error('timeout')
}

describeEachApp('app.effect', ({ open }) => {
  it('calls once for a key, over calls, jobs and processes that share the ledger', async () => {
    const mail = defineJob({
      name: 'mail',
      input: anything<null>(),
      idempotent: true,
      ...everything,
      handler: async (ctx) => await ctx.effect('send:email', { key: 'k' }, () => 'by the job'),
    })
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    let calls = 0
    const send = async () => await app.effect('send:email', { key: 'k' }, () => ({ calls: (calls += 1) }))

    expect(await Promise.all([send(), send(), send()])).toEqual([{ calls: 1 }, { calls: 1 }, { calls: 1 }])
    const { id } = await app.enqueue(mail, null)
    expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ result: { calls: 1 } })
  })

  it('of one tenant is not that of another, nor are two names or keys mixed up', async () => {
    await using opened = await open({ jobs: [], worker: false })
    const keys = new Set<string>()
    const call = async (name: `call:${string}`, key: string, tenant?: string) =>
      await opened.app.effect(
        name,
        { key, ...(tenant === undefined ? {} : { tenant }) },
        ({ idempotencyKey }) => {
          keys.add(idempotencyKey)
        },
      )
    for (const tenant of [undefined, 'a', 'b', 'b']) await call('call:x', 'k', tenant)
    await call('call:a', 'b:c')
    await call('call:a:b', 'c')

    expect(keys.size).toBe(5)
    expect(await opened.sql('select from holdfast.effect')).toHaveLength(5)
  })

  it('tells its caller of a doubt, and does what the caller has chosen', async () => {
    await using opened = await open({ jobs: [], worker: false })
    const { app, events } = opened
    const options = { key: 'k' } as const
    await expect(app.effect('call:x', options, failing)).rejects.toThrow('timeout')
    await expect(app.effect('call:x', options, () => 1)).rejects.toBeInstanceOf(EffectUncertainError)
    const confirmed = await app.effect(
      'call:x',
      { ...options, ifUncertain: () => ({ happened: true, result: 7 }) },
      () => 1,
    )
    await expect(app.effect('call:y', options, failing)).rejects.toThrow('timeout')
    const repeated = await app.effect('call:y', { ...options, ifUncertain: 'repeat' }, () => 2)
    const open_ = app.effect('call:z', options, () => {
      throw notHappened(new Error('refused'))
    })
    await expect(open_).rejects.toThrow('refused')

    expect([confirmed, repeated, await app.effect('call:z', options, () => 3)]).toEqual([7, 2, 3])
    expect(events.of('effect.uncertain')).toEqual([
      { effect: 'call:x', key: 'k', choice: 'ask' },
      { effect: 'call:x', key: 'k', choice: 'confirm' },
      { effect: 'call:y', key: 'k', choice: 'repeat' },
    ])
  })

  it('that takes longer than its hold is told by its signal, and is in doubt for others; its record still counts', async () => {
    await using opened = await open({ jobs: [], worker: false })
    const { app } = opened
    const gate = new Gate()
    let reason: unknown
    const slow = app.effect('call:x', { key: 'k', holdMs: 1000 }, async ({ signal }) => {
      reason = await aborted(signal)
      await gate.wait()
      return 'late'
    })
    await eventually(
      'it is called',
      async () => (await opened.sql('select from holdfast.effect')).length === 1,
    )
    const busy = app.effect('call:x', { key: 'k', waitMs: 0 }, () => 1)
    await expect(busy).rejects.toBeInstanceOf(EffectBusyError)
    await eventually('its hold is over', () => gate.waiting === 1)
    await new Promise((resolve) => setTimeout(resolve, 100))
    await expect(app.effect('call:x', { key: 'k' }, () => 1)).rejects.toBeInstanceOf(EffectUncertainError)
    gate.open()

    expect(await slow).toBe('late')
    expect(reason).toBeInstanceOf(EffectTimeoutError)
    expect(await app.effect('call:x', { key: 'k' }, () => 1)).toBe('late')
  })

  it('that comes back after somebody has recorded a result gives that one: it is the same for everybody', async () => {
    await using opened = await open({ jobs: [], worker: false })
    const { app } = opened
    const gate = new Gate()
    const slow = app.effect('call:x', { key: 'k', holdMs: 1000 }, async () => {
      await gate.wait()
      return 'its own'
    })
    await eventually('it is called', () => gate.waiting === 1)
    await opened.sql(`update holdfast.effect set held_until = now() - interval '1 s'`)
    const ifUncertain = () => ({ happened: true as const, result: 'from the provider' })
    expect(await app.effect('call:x', { key: 'k', ifUncertain }, () => 'x')).toBe('from the provider')
    gate.open()

    expect(await slow).toBe('from the provider')
  })

  it('refuses what cannot be right, and a call inside a transaction, before anything is called', async () => {
    await using opened = await open({ jobs: [], worker: false })
    const { app } = opened
    let called = 0
    const call = async (name: unknown, options: unknown, fn: unknown = () => (called += 1)) =>
      await app.effect(name as 'call:x', options as { key: string }, fn as () => void)
    for (const [name, options, fn] of [
      ['call:x', {}],
      ['', { key: 'k' }],
      ['x', { key: 'k' }],
      ['write:x', { key: 'k' }],
      ['call:x', undefined],
      ['call:x', { key: 'k', tenant: ' ' }],
      ['call:x', { key: 'k', holdMs: 1 }],
      ['call:x', { key: 'k', waitMs: -1 }],
      ['call:x', { key: 'k', ifUncertain: 'maybe' }],
      ['call:x', { key: 'k' }, 'no function'],
    ])
      await expect(call(name, options, fn)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    const inside = app.transaction(async () => await call('call:x', { key: 'k' }))
    await expect(inside).rejects.toMatchObject({ code: 'OUTSIDE_TRANSACTION' })

    expect(called).toBe(0)
    expect(await opened.sql('select from holdfast.effect')).toEqual([])
  })
})

describeEachApp('retention of effects', ({ open }) => {
  it('forgets what has been known for effectDays, and never what is in doubt', async () => {
    const { prune } = await import('../../../src/worker/maintenance/pruner.ts')
    await using opened = await open({ jobs: [], worker: false, retention: { effectDays: 30 } })
    const { database } = opened.app.internals
    await opened.sql(`insert into holdfast.effect (tenant, name, key, state, call, calls, ended_at, intended_at)
      select '', s::text, age::text, s::holdfast.effect_state, gen_random_uuid(), 1, now() - age * interval '1 day', now() - interval '1 year'
      from unnest(array['happened', 'open', 'uncertain', 'intended']) s, unnest(array[29, 31]) age`)
    await opened.sql(`insert into holdfast.effect (tenant, name, key, state, call, calls, ended_at)
      select '', 'many', i::text, 'happened', gen_random_uuid(), 1, now() - interval '1 year' from generate_series(1, 2500) i`)
    expect(opened.app.composition.retention.effectDays).toBe(30)
    await prune(database, opened.app.composition.retention)

    expect(await opened.sql('select name, key from holdfast.effect order by 1, 2')).toEqual([
      { name: 'happened', key: '29' },
      { name: 'intended', key: '29' },
      { name: 'intended', key: '31' },
      { name: 'open', key: '29' },
      { name: 'uncertain', key: '29' },
      { name: 'uncertain', key: '31' },
    ])
  })
})
