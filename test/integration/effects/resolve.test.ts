import { expect, it } from 'vitest'
import { listEffects } from '../../../src/admin/list-effects.ts'
import { resolveEffect } from '../../../src/admin/resolve-effect.ts'
import { retryJob } from '../../../src/admin/retry-job.ts'
import { showEffect } from '../../../src/admin/show-effect.ts'
import { showJob } from '../../../src/admin/show-job.ts'
import { defineJob, EffectUndecidedError } from '../../../src/index.ts'
import { anything, Gate } from '../../faults/handlers.ts'
import { eventually } from '../../support/eventually.ts'
import { everything } from '../../support/everything.ts'
import { describeEachApp, type EachApp } from './each-app.ts'

const id = { name: 'send:email', key: "order 1's" } as const
const decision = { outcome: 'happened', reason: 'seen at the provider', actor: 'ops' } as const

function mailer() {
  const calls: string[] = []
  const mail = defineJob({
    name: 'mail',
    input: anything<null>(),
    idempotent: true,
    ...everything,
    retry: { type: 'fixed', delayMs: 0 },
    async handler(ctx) {
      return await ctx.effect(id.name, { key: id.key }, ({ idempotencyKey }) => {
        calls.push(idempotencyKey)
        if (calls.length === 1) throw new Error('timeout')
        return 'called'
      })
    },
  })
  return { mail, calls }
}

/** A job that was discarded because its effect is in doubt. */
async function discarded({ app }: EachApp, mail: ReturnType<typeof mailer>['mail'], options: object = {}) {
  const { id: jobId } = await app.enqueue(mail, null, options)
  expect(await app.job(jobId).wait({ timeoutMs: 20_000 })).toMatchObject({ reason: 'effect-uncertain' })
  return jobId
}

describeEachApp('a decision about an effect', ({ open }) => {
  it('that it happened lets every job go on that was discarded for it, with the result, and calls nothing', async () => {
    const { mail, calls } = mailer()
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    const ids = [await discarded(opened, mail), await discarded(opened, mail)]
    const answer = await resolveEffect(app.internals, id, { ...decision, result: '{"n": 1.10}' })

    expect(answer).toMatchObject({
      status: 'resolved',
      state: 'happened',
      jobs: ids.map((jobId) => ({ id: jobId, retried: true })),
    })
    for (const jobId of ids)
      expect(await app.job(jobId).wait({ timeoutMs: 20_000 })).toMatchObject({ result: { n: 1.1 } })
    expect(calls).toHaveLength(1)
    expect((await showEffect(app.internals.database, id))?.facts.result).toBe('{"n": 1.10}')
    expect(await opened.sql('select from holdfast.effect_question')).toEqual([])
  })

  it('that it may be repeated has it called again, under the same key', async () => {
    const { mail, calls } = mailer()
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    const jobId = await discarded(opened, mail)
    await resolveEffect(app.internals, id, { ...decision, outcome: 'repeat' })

    expect(await app.job(jobId).wait({ timeoutMs: 20_000 })).toMatchObject({ result: 'called', attempts: 3 })
    expect(calls).toHaveLength(2)
    expect(new Set(calls).size).toBe(1)
  })

  it('is kept with who, when and why; repeating it changes nothing more; the opposite is refused', async () => {
    const { mail } = mailer()
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    const jobId = await discarded(opened, mail)
    const first = await resolveEffect(app.internals, id, { ...decision, retry: false })
    const again = await resolveEffect(app.internals, id, { ...decision, result: '2' })
    await app.job(jobId).wait({ timeoutMs: 20_000 })
    const opposite = await resolveEffect(app.internals, id, { ...decision, outcome: 'repeat' })
    const unknown = await resolveEffect(app.internals, { name: 'x', key: 'y' }, decision)
    const shown = await showEffect(app.internals.database, id)

    expect(first).toMatchObject({ status: 'resolved', jobs: [{ id: jobId, retried: false }] })
    expect(again).toMatchObject({ status: 'unchanged', jobs: [{ id: jobId, retried: true }] })
    expect(opposite).toEqual({ status: 'not-in-doubt', state: 'happened' })
    expect(unknown).toEqual({ status: 'not-found' })
    expect(shown?.audit).toEqual([
      { at: expect.any(Date), actor: 'ops', action: 'effect-happened', note: 'seen at the provider' },
    ])
    expect(shown?.facts).toMatchObject({ state: 'happened', result: 'null', calls: 1 })
  })

  it('is refused while the effect is being called', async () => {
    const gate = new Gate()
    const mail = defineJob({
      name: 'mail',
      input: anything<null>(),
      idempotent: true,
      ...everything,
      handler: async (ctx) => await ctx.effect(id.name, { key: id.key }, async () => await gate.wait()),
    })
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    const { id: jobId } = await app.enqueue(mail, null)
    await eventually('it is called', () => gate.waiting === 1)
    const refused = await resolveEffect(app.internals, id, decision)
    const listed = await listEffects(app.internals.database)
    const underWay = await listEffects(app.internals.database, { state: 'intended' })
    gate.open()
    await app.job(jobId).wait({ timeoutMs: 20_000 })

    expect(refused).toEqual({ status: 'held' })
    expect(listed.effects).toEqual([])
    expect(underWay.effects).toMatchObject([{ held: true, jobId }])
    expect(await opened.sql('select from holdfast.audit')).toEqual([])
  })

  it('is asked for by a plain retry, which is refused with the command to give, and possible once there is one', async () => {
    const { mail } = mailer()
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    const jobId = await discarded(opened, mail)
    const refused = await retryJob(app.internals, jobId).catch((error: unknown) => error)
    const { explanation, effects } = await showJob(app.internals.database, jobId)
    await resolveEffect(app.internals, id, { ...decision, retry: false })
    const retried = await retryJob(app.internals, jobId)

    expect(refused).toBeInstanceOf(EffectUndecidedError)
    expect(String(refused)).toContain(
      `holdfast effects resolve send:email 'order 1'\\''s' --happened (or --repeat) --reason "how you know"`,
    )
    expect(explanation).toContain(`holdfast effects list --job ${jobId}`)
    expect(effects).toMatchObject([{ ...id, state: 'uncertain', askingJobs: [jobId] }])
    expect(retried).toMatchObject({ status: 'ready', attempts: 2 })
    expect(await app.job(jobId).wait({ timeoutMs: 20_000 })).toMatchObject({
      state: 'completed',
      result: null,
    })
  })

  it('leaves a job whose unique key a live job holds, and names that one', async () => {
    const { mail } = mailer()
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    const jobId = await discarded(opened, mail, { uniqueKey: 'u' })
    const holder = await app.enqueue(mail, null, { uniqueKey: 'u', delayMs: 60_000 })
    const answer = await resolveEffect(app.internals, id, decision)

    expect(answer).toMatchObject({
      status: 'resolved',
      jobs: [{ id: jobId, retried: false, message: expect.stringContaining(`job ${holder.id}`) }],
    })
    expect(await app.job(jobId).get()).toMatchObject({ state: 'discarded' })
  })

  it('does not touch a job that was discarded for another reason since', async () => {
    const { mail } = mailer()
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    const jobId = await discarded(opened, mail)
    await opened.sql(`update holdfast.outcome set reason = 'no attempts left' where job_id = $1`, [jobId])
    const answer = await resolveEffect(app.internals, id, decision)

    expect(answer).toMatchObject({ jobs: [{ id: jobId, retried: false }] })
    expect(await app.job(jobId).get()).toMatchObject({ state: 'discarded' })
  })

  it('needs a reason, a name, and a result that is JSON; nothing is changed without', async () => {
    const { mail } = mailer()
    await using opened = await open({ jobs: [mail] })
    const { internals } = opened.app
    await discarded(opened, mail)
    for (const wrong of [
      { reason: undefined },
      { reason: ' ' },
      { actor: '' },
      { result: '{' },
      { result: '"\\u0000"' },
      { result: '1', outcome: 'repeat' as const },
      { result: JSON.stringify('x'.repeat(300_000)) },
    ])
      await expect(resolveEffect(internals, id, { ...decision, ...wrong })).rejects.toMatchObject({
        code: expect.stringMatching(/INVALID_ARGUMENT|NOT_STORABLE|TOO_LARGE/),
      })
    expect(await opened.sql('select state::text from holdfast.effect')).toEqual([{ state: 'uncertain' }])
  })

  it('by ten people at once is made once, and each job goes on once', async () => {
    const { mail, calls } = mailer()
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    const jobId = await discarded(opened, mail)
    const answers = await Promise.all(
      Array.from({ length: 10 }, async () => await resolveEffect(app.internals, id, decision)),
    )
    await app.job(jobId).wait({ timeoutMs: 20_000 })

    expect(answers.filter(({ status }) => status === 'resolved')).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 'unchanged')).toHaveLength(9)
    expect(
      answers.flatMap((answer) => ('jobs' in answer ? answer.jobs.filter((job) => job.retried) : [])),
    ).toHaveLength(1)
    expect(await opened.sql('select from holdfast.audit')).toHaveLength(1)
    expect(calls).toHaveLength(1)
  })
})

describeEachApp('the list of effects', ({ open }) => {
  it('shows what waits for a decision, oldest first, by pages that neither repeat nor skip', async () => {
    await using opened = await open({ jobs: [], worker: false })
    const { database } = opened.app.internals
    // Several in the same microsecond.
    await opened.sql(`insert into holdfast.effect (tenant, name, key, state, call, calls, intended_at)
      select '', 'send:email', 'k' || lpad(i::text, 3, '0'), (array['uncertain', 'intended', 'happened', 'open'])[1 + i % 4]::holdfast.effect_state,
        gen_random_uuid(), 1, timestamptz '2026-01-01 00:00:00.123457+00' + i / 20 * interval '1 microsecond' from generate_series(0, 99) i`)
    const keys: string[] = []
    let after: string | undefined
    do {
      const page = await listEffects(database, { limit: 7, after })
      keys.push(...page.effects.map(({ key }) => key))
      after = page.next ?? undefined
    } while (after !== undefined)

    expect(keys).toHaveLength(50)
    expect(keys).toEqual([...new Set(keys)].sort())
    for (const state of ['uncertain', 'intended', 'happened', 'open'])
      expect((await listEffects(database, { state, limit: 1000 })).effects).toHaveLength(25)
    for (const wrong of [{ after: 'x' }, { after: 'WzFd' }, { state: 'done' }, { limit: 0 }, { jobId: 'x' }])
      await expect(listEffects(database, wrong)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})
