import { expect, it } from 'vitest'
import { startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { defineJob } from '../../src/index.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { type AnyContext, everything } from '../support/everything.ts'
import { startProgram } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { appOn, openApp } from './apps.ts'
import { anything, Gate } from './handlers.ts'

const program = 'test/faults/programs/effects.ts'

function job(handler: (ctx: AnyContext) => unknown, more: object = {}) {
  return defineJob({
    name: 'mail',
    input: anything<unknown>(),
    idempotent: true,
    retry: { type: 'fixed', delayMs: 0 },
    ...everything,
    ...more,
    handler: handler as never,
  })
}
const producer = job(() => {})

const effects = async (db: TestDatabase) =>
  await db.sql('select state::text, calls, doubts, result from holdfast.effect')

it('a worker SIGKILLed between the call and its record leaves a doubt: a person is asked, and nothing is called again', async () => {
  await using opened = await openApp({ jobs: [producer] })
  const { app, db } = opened
  const { id } = await app.enqueue(producer, { ifUncertain: 'ask' })
  await using first = startProgram(program, {
    args: [JSON.stringify({ database: db.url, leaseMs: 1000, act: 'die' })],
  })
  expect((await first.exited).signal).toBe('SIGKILL')
  await using second = startProgram(program, {
    args: [JSON.stringify({ database: db.url, leaseMs: 1000, act: 'return' })],
  })
  await second.message('refused')

  expect(await app.job(id).wait({ timeoutMs: 15_000 })).toMatchObject({
    state: 'discarded',
    reason: 'effect-uncertain',
    attempts: 2,
  })
  expect(first.messages.filter(({ kind }) => kind === 'called')).toHaveLength(1)
  expect(second.messages.filter(({ kind }) => kind === 'called')).toEqual([])
  expect(await effects(db)).toEqual([{ state: 'intended', calls: 1, doubts: 0, result: null }])
  expect(await db.sql('select job_id::text as id from holdfast.effect_question')).toEqual([{ id }])
})

it('a worker SIGKILLed between the call and its record has the call repeated under the same idempotency key, where that was chosen', async () => {
  await using opened = await openApp({ jobs: [producer] })
  const { app, db } = opened
  const { id } = await app.enqueue(producer, { ifUncertain: 'repeat' })
  await using first = startProgram(program, {
    args: [JSON.stringify({ database: db.url, leaseMs: 1000, act: 'die' })],
  })
  const before = await first.message('called')
  await using second = startProgram(program, {
    args: [JSON.stringify({ database: db.url, leaseMs: 1000, act: 'return' })],
  })
  const after = await second.message('called')

  expect(after['idempotencyKey']).toBe(before['idempotencyKey'])
  expect(await app.job(id).wait({ timeoutMs: 15_000 })).toMatchObject({ result: { attempt: 2 } })
  expect(await effects(db)).toEqual([{ state: 'happened', calls: 2, doubts: 1, result: { attempt: 2 } }])
})

it('a worker SIGSTOPped inside a call past its lease cannot record it when it wakes: what the next one recorded stands', async () => {
  await using opened = await openApp({ jobs: [producer] })
  const { app, db } = opened
  await using stopped = startProgram(program, {
    args: [JSON.stringify({ database: db.url, leaseMs: 1000, act: 'wait' })],
  })
  await stopped.message('ready')
  const { id } = await app.enqueue(producer, { ifUncertain: 'repeat' })
  await stopped.message('called')
  stopped.pause()
  await using other = startProgram(program, {
    args: [JSON.stringify({ database: db.url, leaseMs: 1000, act: 'return' })],
  })
  await other.message('recorded')
  stopped.resume()

  expect(await stopped.message('refused')).toMatchObject({ attempt: 1, error: 'LeaseLostError' })
  expect(await app.job(id).get()).toMatchObject({ state: 'completed', attempts: 2, result: { attempt: 2 } })
  expect(await effects(db)).toEqual([{ state: 'happened', calls: 2, doubts: 1, result: { attempt: 2 } }])
})

for (const [what, statement] of [
  ['intent', /holdfast:begin_effect/],
  ['record', /holdfast:record_effect/],
] as const)
  it(`a lost answer to the ${what} of an effect is asked for again: one call, one attempt`, async () => {
    let calls = 0
    const mail = job(async (ctx) => await ctx.effect('send:email', { key: 'k' }, () => (calls += 1)))
    await using db = await createDatabase()
    await using proxy = await startProxy(db.url)
    await using opened = appOn(db, { jobs: [mail], database: proxy.url() })
    const hit = proxy.dropAnswer(statement)
    await opened.app.worker().start()
    const { id } = await opened.app.enqueue(mail, null)
    const end = await opened.app.job(id).wait({ timeoutMs: 15_000 })
    await hit

    expect(end).toMatchObject({ state: 'completed', attempts: 1, result: 1 })
    expect(calls).toBe(1)
    expect(opened.events.of('effect.uncertain')).toEqual([])
    expect(await effects(db)).toMatchObject([{ state: 'happened', calls: 1, doubts: 0 }])
  })

it('a database restarted between the call and its record gets the record afterwards: one call, one attempt', async () => {
  await using server = await startPostgres({ settings: volatileSettings })
  await using db = await createDatabase({ server: server.url() })
  let calls = 0
  const mail = job(async (ctx) => {
    return await ctx.effect('send:email', { key: 'k' }, async () => {
      calls += 1
      await server.restart('immediate')
      return calls
    })
  })
  await using opened = appOn(db, { jobs: [mail] })
  await opened.app.worker().start()
  const { id } = await opened.app.enqueue(mail, null)
  await eventually('it has ended', async () => (await opened.app.job(id).get())?.state === 'completed')

  expect(calls).toBe(1)
  expect(await opened.app.job(id).get()).toMatchObject({ attempts: 1, result: 1 })
  expect(await effects(db)).toMatchObject([{ state: 'happened', calls: 1 }])
})

it('a call outside jobs whose process was told nothing is in doubt after its hold, not before', async () => {
  await using opened = await openApp({ jobs: [] })
  const { app, db } = opened
  await db.sql(`insert into holdfast.effect (tenant, name, key, state, call, calls, held_until)
    values ('', 'call:x', 'k', 'intended', gen_random_uuid(), 1, clock_timestamp() + interval '700 ms')`)
  const fromMs = performance.now()
  const asking = app.effect('call:x', { key: 'k', waitMs: 10_000 }, () => 1)

  await expect(asking).rejects.toMatchObject({ code: 'EFFECT_UNCERTAIN' })
  expect(performance.now() - fromMs).toBeGreaterThan(600)
})

it('the same key from twenty jobs over two workers is one call', async () => {
  let calls = 0
  const mail = job(async (ctx) => {
    return await ctx.effect('send:email', { key: 'shared', waitMs: 20_000 }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 50))
      return (calls += 1)
    })
  })
  await using opened = await openApp({ jobs: [mail] })
  await using other = appOn(opened.db, { jobs: [mail] })
  await Promise.all([opened.app.worker().start(), other.app.worker().start()])
  const jobs = await opened.app.enqueueMany(Array.from({ length: 20 }, () => ({ job: mail, input: null })))
  for (const { id } of jobs)
    expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
      state: 'completed',
      result: 1,
    })
  expect(calls).toBe(1)
})

it('effects are written right whatever the defaults of the role are', async () => {
  const gate = new Gate()
  const mail = job(async (ctx) => {
    const result = await ctx.effect('send:email', { key: 'shared' }, async () => {
      await gate.wait()
      return 1
    })
    return await ctx.commit(async (tx) => {
      const { rows } = await tx.query<{ level: string }>(
        `select current_setting('transaction_isolation') as level`,
      )
      return [result, rows[0]?.level]
    })
  })
  await using db = await createDatabase()
  await db.sql(
    `create schema evil; create function evil.clock_timestamp() returns timestamptz language sql as 'select null::timestamptz'`,
  )
  await db.sql(`alter database ${db.name} set search_path = evil, pg_catalog`)
  await db.sql(`alter database ${db.name} set default_transaction_isolation = 'repeatable read'`)
  await using opened = appOn(db, { jobs: [mail] })
  await opened.app.worker().start()
  const jobs = await opened.app.enqueueMany(Array.from({ length: 5 }, () => ({ job: mail, input: null })))
  await eventually('one calls', () => gate.waiting === 1)
  gate.open()
  for (const { id } of jobs)
    expect(await opened.app.job(id).wait({ timeoutMs: 15_000 })).toMatchObject({
      result: [1, 'read committed'],
    })
  expect(await effects(db)).toMatchObject([{ state: 'happened', calls: 1 }])
})

it('a call of an abandoned handler is in doubt at once, though others keep its lease alive', async () => {
  const gate = new Gate()
  const both = defineJob({
    name: 'mail',
    input: anything<string>(),
    idempotent: true,
    ...everything,
    timeoutMs: 300,
    abortGraceMs: 0,
    retry: { type: 'fixed', delayMs: 0 },
    async handler(ctx) {
      await ctx.effect('send:email', { key: 'k', waitMs: 60_000 }, async () => await gate.wait())
    },
  })
  const longer = defineJob({
    name: 'long',
    input: anything<string>(),
    idempotent: true,
    handler: async () => await gate.wait(),
  })
  await using opened = await openApp({ jobs: [both, longer] })
  const { app, db } = opened
  const [mail] = await app.enqueueMany([
    { job: both, input: 'mail' },
    { job: longer, input: 'long' },
  ])
  await app.worker().start()
  const end = await app.job(mail?.id ?? '').wait({ timeoutMs: 20_000 })

  expect(
    await db.sql('select cardinality(job_ids)::int as n from holdfast.lease where cardinality(job_ids) > 1'),
  ).toEqual([{ n: 2 }])
  expect(end).toMatchObject({ state: 'discarded', reason: 'effect-uncertain', attempts: 2 })
  gate.open()
})
