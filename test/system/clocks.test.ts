import { describe, expect, it } from 'vitest'
import { appOver, note } from '../integration/homes.ts'
import { createDatabase } from '../support/database.ts'
import { startProgram } from '../support/processes.ts'

/** Row 48 and scenario 56: clocks of processes that are five minutes off, either way; leases of 30 seconds. */
describe.each(['+5m', '-5m'])('a worker whose clock is off by %s', (offset) => {
  it('rescues no live lease, starts nothing early and nothing late', async () => {
    await using db = await createDatabase()
    await using right = startProgram('test/system/programs/clock-worker.ts', { args: [db.url, 'right'] })
    await using wrong = startProgram('test/system/programs/clock-worker.ts', {
      args: [db.url, 'wrong'],
      under: ['faketime', '-f', offset],
    })
    await right.message('ready', { deadlineMs: 30_000 })
    const { now } = await wrong.message('ready', { deadlineMs: 30_000 })
    // The control: its clock is off indeed.
    expect(Math.abs((now as number) - Date.now())).toBeGreaterThan(4 * 60_000)

    const app = appOver(db.url)
    try {
      const long = await app.enqueueMany(
        Array.from({ length: 8 }, () => ({ job: note, input: { sleepMs: 3000 }, queue: 'mail' })),
      )
      const soon = await app.enqueueMany(
        Array.from({ length: 8 }, () => ({ job: note, input: {}, queue: 'mail', delayMs: 2000 })),
      )
      const later = await app.enqueueMany(
        Array.from({ length: 8 }, () => ({ job: note, input: {}, queue: 'mail', delayMs: 120_000 })),
      )
      for (const { id } of [...long, ...soon]) {
        expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
          state: 'completed',
          attempts: 1,
        })
      }
      for (const { id } of later) expect(await app.job(id).get()).toMatchObject({ state: 'scheduled' })

      const starts = [...right.messages, ...wrong.messages].filter(({ kind }) => kind === 'started')
      expect(new Set(starts.map(({ who }) => who))).toEqual(new Set(['right', 'wrong']))
      expect(await db.sql(`select from holdfast.attempt where ended = 'worker-lost'`)).toEqual([])
      // By the clock of the database: due to start, within a moment of it and not before.
      const [late] = await db.sql<{ early: number; late: number }>(
        `select min(extract(epoch from o.finished_at - j.run_at))::float8 as early, max(extract(epoch from o.finished_at - j.run_at))::float8 as late
         from holdfast.outcome o join holdfast.job j on j.id = o.job_id where j.run_at is not null`,
      )
      expect(late?.early).toBeGreaterThanOrEqual(0)
      expect(late?.late).toBeLessThan(5)
    } finally {
      await app.close()
    }
  })

  it('enqueues what is due in so many milliseconds, by the clock of the database', async () => {
    await using db = await createDatabase()
    await using wrong = startProgram('test/system/programs/clock-producer.ts', {
      args: [db.url],
      under: ['faketime', '-f', offset],
    })
    await wrong.message('done', { deadlineMs: 30_000 })
    const [row] = await db.sql<{ wait: number; age: number }>(
      `select extract(epoch from run_at - enqueued_at)::float8 as wait, abs(extract(epoch from now() - enqueued_at))::float8 as age from holdfast.job`,
    )
    expect(row?.wait).toBeCloseTo(60, 0)
    expect(row?.age).toBeLessThan(30)
  })
})
