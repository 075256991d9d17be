import { expect, it } from 'vitest'
import { defineJob } from '../../../src/index.ts'
import { anything, Gate } from '../../faults/handlers.ts'
import { eventually } from '../../support/eventually.ts'
import { type AnyContext, everything } from '../../support/everything.ts'
import { describeEachApp, type EachApp } from './each-app.ts'

function job(handler: (ctx: AnyContext) => unknown, more: object = {}) {
  return defineJob({
    name: 'job',
    input: anything<null>(),
    idempotent: true,
    retry: { type: 'fixed', delayMs: 0 },
    ...everything,
    ...more,
    handler: handler as never,
  })
}
const child = job(() => 'child', { name: 'child' })
const mayEnqueue = { effects: [...everything.effects, 'enqueue:child'] }

async function runOne({ app, sql }: EachApp, one: ReturnType<typeof job>, options: object = {}) {
  await sql('create table if not exists written (n int)')
  const { id } = await app.enqueue(one, null, options)
  return { id, ...(await app.job(id).wait({ timeoutMs: 20_000 })) }
}

const written = async ({ sql }: EachApp) =>
  (await sql<{ n: number }>('select n from written order by n')).map(({ n }) => n)

describeEachApp("a job's own commit", ({ open }) => {
  it('makes writes, enqueues, effects and the completion one: all of them, or none', async () => {
    const both = job(async (ctx) => {
      await ctx.commit(async (tx) => {
        await tx.query('insert into written values ($1)', [ctx.job.attempt])
        await tx.enqueue(child, null)
        await tx.effect('write:x', { key: `k${ctx.job.attempt}` }, () => 1)
        if (ctx.job.attempt < 3) throw new Error('not yet')
        return { n: ctx.job.attempt }
      })
    }, mayEnqueue)
    await using opened = await open({ jobs: [both, child] })

    expect(await runOne(opened, both)).toMatchObject({ state: 'completed', attempts: 3, result: { n: 3 } })
    expect(await written(opened)).toEqual([3])
    expect(await opened.sql(`select from holdfast.job where name = 'child'`)).toHaveLength(1)
    expect(await opened.sql('select key, state::text from holdfast.effect')).toEqual([
      { key: 'k3', state: 'happened' },
    ])
    expect(opened.events.of('job.completed').filter(({ jobName }) => jobName === 'job')).toHaveLength(1)
  })

  it('stands, whatever the handler does afterwards, and frees the unique key', async () => {
    const stubborn = job(async (ctx) => {
      await ctx.commit(() => 'committed')
      await ctx.enqueue(child, null).catch(() => undefined)
      await ctx.effect('call:x', { key: 'k' }, () => 1).catch(() => undefined)
      throw new Error('ignored')
    }, mayEnqueue)
    await using opened = await open({ jobs: [stubborn, child] })

    expect(await runOne(opened, stubborn, { uniqueKey: 'u' })).toMatchObject({
      state: 'completed',
      attempts: 1,
      result: 'committed',
    })
    expect(await opened.sql('select from holdfast.unique_key')).toEqual([])
    expect(await opened.sql(`select from holdfast.job where name = 'child'`)).toEqual([])
    expect(await opened.sql('select from holdfast.effect')).toEqual([])
    await eventually('the lease has ended', async () => {
      return (await opened.sql('select from holdfast.lease')).length === 0
    })
  })

  it('that the handler does not wait for still decides: committed, the job is; failed, the attempt is', async () => {
    const floating = job(async (ctx) => {
      void ctx.commit(async (tx) => {
        await new Promise((resolve) => setTimeout(resolve, 50))
        await tx.query('insert into written values ($1)', [ctx.job.attempt])
        if (ctx.job.attempt === 1) throw new Error('rolled back')
        return 'committed'
      })
      return await Promise.resolve('returned')
    })
    await using opened = await open({ jobs: [floating] })

    expect(await runOne(opened, floating)).toMatchObject({
      state: 'completed',
      attempts: 2,
      result: 'committed',
    })
    expect(await written(opened)).toEqual([2])
  })

  it('after a decision is refused: the decision stands, and nothing is written', async () => {
    const codes: unknown[] = []
    const decided = job(async (ctx) => {
      try {
        ctx.discard('not wanted')
      } catch {
        // Swallowed on purpose.
      }
      await ctx
        .commit(async (tx) => await tx.query('insert into written values (1)'))
        .catch((error: unknown) => codes.push((error as { code: string }).code))
    })
    const inside = job(
      async (ctx) => {
        await ctx.commit(async (tx) => {
          await tx.query('insert into written values (2)')
          try {
            ctx.snooze({ inMs: 3_600_000 })
          } catch {
            // Swallowed on purpose.
          }
        })
      },
      { name: 'inside' },
    )
    await using opened = await open({ jobs: [decided, inside] })

    expect(await runOne(opened, decided)).toMatchObject({ state: 'discarded', reason: 'not wanted' })
    expect(codes).toEqual(['ATTEMPT_ENDED'])
    const { id } = await opened.app.enqueue(inside, null)
    await eventually('it is snoozed', async () => (await opened.app.job(id).get())?.state === 'scheduled')
    expect(await written(opened)).toEqual([])
  })

  it('beside another of the same attempt is refused', async () => {
    const twice = job(async (ctx) => {
      const commit = (n: number) =>
        ctx.commit(async (tx) => {
          await tx.query('insert into written values ($1)', [n])
          return n
        })
      const ends = await Promise.allSettled([commit(1), commit(2)])
      expect(ends[1]).toMatchObject({ status: 'rejected', reason: { code: 'ATTEMPT_ENDED' } })
    })
    await using opened = await open({ jobs: [twice] })

    expect(await runOne(opened, twice)).toMatchObject({ state: 'completed', result: 1 })
    expect(await written(opened)).toEqual([1])
  })

  it('with a result that the schema of the job refuses rolls back', async () => {
    const issues = (value: unknown) =>
      value === 'good' ? { value: 'checked' } : { issues: [{ message: 'bad' }] }
    const strict = job(
      async (ctx) => {
        await ctx.commit(async (tx) => {
          await tx.query('insert into written values ($1)', [ctx.job.attempt])
          return ctx.job.attempt === 1 ? 'bad' : 'good'
        })
      },
      { result: { '~standard': { version: 1, vendor: 'test', validate: issues } } },
    )
    await using opened = await open({ jobs: [strict] })

    expect(await runOne(opened, strict)).toMatchObject({ state: 'completed', attempts: 2, result: 'checked' })
    expect(await written(opened)).toEqual([2])
  })

  it('completes the job even with a result that JSON cannot hold, and says that it was altered', async () => {
    const odd = job(async (ctx) => void (await ctx.commit(() => ({ n: 1n, text: 'a\0' }))))
    await using opened = await open({ jobs: [odd] })

    expect(await runOne(opened, odd)).toMatchObject({ state: 'completed', attempts: 1 })
    expect(opened.events.of('result.altered')).toHaveLength(1)
  })

  it('of a handler that is past its time and its grace does not commit, and the job has a retry alone', async () => {
    const gate = new Gate()
    const ends: unknown[] = []
    const slow = job(
      async (ctx) => {
        if (ctx.job.attempt > 1) return 'second'
        await ctx
          .commit(async (tx) => {
            await tx.query('insert into written values (1)')
            await gate.wait()
          })
          .catch((error: unknown) => ends.push((error as { code: string }).code))
        return 'first'
      },
      { timeoutMs: 50, abortGraceMs: 0, retry: { type: 'fixed', delayMs: 300 } },
    )
    await using opened = await open({ jobs: [slow] })
    const running = runOne(opened, slow)
    await eventually('it is abandoned', () => opened.events.of('handler.abandoned').length === 1)
    gate.open()

    expect(await running).toMatchObject({ state: 'completed', attempts: 2, result: 'second' })
    expect(ends).toEqual(['ATTEMPT_ENDED'])
    expect(await written(opened)).toEqual([])
  })

  it('is refused once somebody has cancelled the job, and the job ends cancelled', async () => {
    const gate = new Gate()
    const cancelled = job(async (ctx) => {
      await ctx.commit(async (tx) => {
        await gate.wait()
        await tx.query('insert into written values (1)')
      })
    })
    await using opened = await open({ jobs: [cancelled] })
    await opened.sql('create table written (n int)')
    const { id } = await opened.app.enqueue(cancelled, null)
    await eventually('it is in its transaction', () => gate.waiting === 1)
    // On a single connection the cancel waits for the transaction, and finds the job completed.
    const cancelling = opened.app.job(id).cancel({ reason: 'not wanted' })
    await Promise.race([cancelling, new Promise((resolve) => setTimeout(resolve, 300))])
    gate.open()
    const answer = await cancelling
    const end = await opened.app.job(id).wait({ timeoutMs: 20_000 })

    if (answer.status === 'cancelling') {
      expect(end?.state).toBe('cancelled')
      expect(await written(opened)).toEqual([])
    } else {
      expect([answer.status, end?.state]).toEqual(['finished', 'completed'])
      expect(await written(opened)).toEqual([1])
    }
    expect(await opened.sql('select from holdfast.attempt where job_id = $1', [id])).toEqual([])
  })
})

describeEachApp('an effect on this database', ({ open }) => {
  it('is made once over all transactions that commit, and its record rolls back with it', async () => {
    let runs = 0
    const writes = job(async (ctx) => {
      const once = async () =>
        await ctx.transaction(async (tx) => {
          return await tx.effect('write:x', { key: 'k' }, async () => {
            runs += 1
            await tx.query('insert into written values ($1)', [runs])
            if (runs === 1) throw new Error('rolled back')
            return { runs }
          })
        })
      await once().catch(() => undefined)
      return [await once(), await once()]
    })
    await using opened = await open({ jobs: [writes] })

    expect(await runOne(opened, writes)).toMatchObject({ result: [{ runs: 2 }, { runs: 2 }] })
    expect(await written(opened)).toEqual([2])
  })

  it('whose failure the transaction survives is open again', async () => {
    const writes = job(async (ctx) => {
      await ctx.transaction(async (tx) => {
        await tx
          .effect('write:x', { key: 'k' }, () => {
            throw new Error('no')
          })
          .catch(() => undefined)
      })
      return await ctx.commit(async (tx) => await tx.effect('write:x', { key: 'k' }, () => 'second'))
    })
    await using opened = await open({ jobs: [writes] })

    expect(await runOne(opened, writes)).toMatchObject({ state: 'completed', result: 'second' })
  })

  it('that the transaction does not wait for is in doubt, never said to have happened', async () => {
    const gate = new Gate()
    const writes = job(async (ctx) => {
      await ctx.commit(async (tx) => {
        const doing = tx.effect('write:x', { key: 'k' }, async () => await gate.wait())
        doing.catch(() => undefined)
        await eventually('it has begun', () => gate.waiting === 1)
      })
      gate.open()
    })
    await using opened = await open({ jobs: [writes] })

    expect(await runOne(opened, writes)).toMatchObject({ state: 'completed' })
    expect(await opened.sql('select state::text from holdfast.effect')).toEqual([{ state: 'intended' }])
  })

  it('inside itself is refused', async () => {
    const writes = job(async (ctx) => {
      return await ctx.transaction(async (tx) => {
        return await tx.effect('write:x', { key: 'k' }, async () => {
          return await tx
            .effect('write:x', { key: 'k' }, () => 1)
            .catch((error: unknown) => (error as Error).name)
        })
      })
    })
    await using opened = await open({ jobs: [writes] })

    expect(await runOne(opened, writes)).toMatchObject({ result: 'InvalidArgumentError' })
  })

  it('is never one on the outside, which no transaction takes back', async () => {
    const wrong = job(async (ctx) => {
      await ctx.commit(async (tx) => await tx.effect('send:email' as never, { key: 'k' }, () => 1))
    })
    await using opened = await open({ jobs: [wrong] })
    const ended = await runOne(opened, wrong, { maxAttempts: 1 })

    expect(ended).toMatchObject({ state: 'discarded', error: { code: 'INVALID_ARGUMENT' } })
    expect(await opened.sql('select from holdfast.effect')).toEqual([])
  })
})

describeEachApp('checkpoint and progress', ({ open }) => {
  it('are there for the next attempt, and for people, by the id of the job', async () => {
    const seen: unknown[] = []
    const steps = job(async (ctx) => {
      seen.push(ctx.job.checkpoint)
      if (ctx.job.attempt === 1) {
        await ctx.checkpoint({ at: new Date(0) })
        await ctx.progress(0.5, 'half')
        seen.push(ctx.job.checkpoint)
        throw new Error('again')
      }
      await ctx.progress(0.25, 'never falls')
    })
    await using opened = await open({ jobs: [steps] })
    const { id } = await runOne(opened, steps)

    const kept = { at: '1970-01-01T00:00:00.000Z' }
    expect(seen).toEqual([undefined, kept, kept])
    expect(await opened.app.job(id).get()).toMatchObject({
      checkpoint: kept,
      progress: { fraction: 0.5, note: 'never falls', updatedAt: expect.any(Date) },
    })
  })

  it('are undefined for a job that tells of none, and refused where they cannot be right', async () => {
    const codes: unknown[] = []
    const odd = job(async (ctx) => {
      const calls = [
        () => ctx.checkpoint(1n),
        () => ctx.checkpoint('x'.repeat(300_000)),
        () => ctx.progress(1.5),
        () => ctx.progress(Number.NaN),
      ]
      for (const call of calls)
        await call().catch((error: unknown) => codes.push((error as { code: string }).code))
    })
    await using opened = await open({ jobs: [odd] })
    const { id } = await runOne(opened, odd)

    expect(codes).toEqual(['NOT_STORABLE', 'TOO_LARGE', 'INVALID_ARGUMENT', 'INVALID_ARGUMENT'])
    const snapshot = await opened.app.job(id).get()
    expect([snapshot?.checkpoint, snapshot?.progress]).toEqual([undefined, undefined])
  })
})
