import { expect, test } from 'vitest'
import { defineJob, resource } from '../../src/index.ts'
import { openEmbeddedApp } from '../faults/apps.ts'
import { anything } from '../faults/handlers.ts'

const folder = resource({ name: 'folder', provides: ['store:report'], create: () => 'reports' })

test('a second attempt finds the checkpoint of the first, also where resources and authorize come before it', async () => {
  const found: unknown[] = []
  const job = defineJob({
    name: 'report',
    input: anything(),
    uses: { folder },
    effects: ['store:report'],
    authorize: (ctx) => ctx.job.attempt > 0,
    idempotent: true,
    retry: { type: 'fixed', delayMs: 0 },
    handler: async (ctx) => {
      found.push(ctx.job.checkpoint)
      await ctx.checkpoint({ page: ctx.job.attempt })
      await ctx.progress(ctx.job.attempt / 2, `page ${ctx.job.attempt}`)
      if (ctx.job.attempt === 1) throw new Error('once')
    },
  })
  await using opened = await openEmbeddedApp({ jobs: [job] })
  const { app } = opened
  const worker = app.worker()
  await worker.start()

  const { id } = await app.enqueue(job, {})
  expect(await app.job(id).get()).toMatchObject({ progress: undefined })
  await app.job(id).wait({ timeoutMs: 20_000 })

  expect(found).toEqual([undefined, { page: 1 }])
  expect(await app.job(id).get()).toMatchObject({
    state: 'completed',
    progress: { fraction: 1, note: 'page 2' },
  })
})
