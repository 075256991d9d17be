import { defineApp, defineJob, resource } from 'holdfast'
import { z } from 'zod'
import { exportEntries } from './export-entries.ts'
import { Storage } from './storage.ts'
import { sweepPartials } from './sweep.ts'

const {
  DATABASE_URL: database = 'pglite:./.holdfast/export',
  EXPORT_FOLDER: root = './.holdfast/exports',
  /** Two deployments may share the folder: each has its own place in it. */
  EXPORT_DEPLOYMENT: deployment = 'development',
  /** How long a partial file is kept after its job has ended, for whoever wants to look at it. */
  EXPORT_GRACE_MS: graceMs = '3600000',
} = process.env

export const openStorage = () => new Storage({ root, deployment })

const storage = resource({ name: 'storage', provides: ['store:export'], create: openStorage })

export const exportJob = defineJob({
  name: 'reports.export',
  queue: 'reports',
  input: z.object({ tenant: z.string(), exportId: z.string() }),
  uses: { storage },
  effects: ['read:entry', 'store:export'],
  idempotent: true,
  handler: async (ctx, request) =>
    await exportEntries(ctx, request, ctx.resources.storage.of(request.tenant)),
})

/** Run it now and then for each tenant. */
export const sweepJob = defineJob({
  name: 'reports.sweep',
  queue: 'reports',
  input: z.object({ tenant: z.string() }),
  uses: { storage },
  effects: ['store:export'],
  idempotent: true,
  handler: async (ctx, { tenant }) => {
    const space = ctx.resources.storage.of(tenant)
    const removed = await sweepPartials(space, { graceMs: Number(graceMs), hasEnded })
    return { removed: removed.map(({ key }) => key) }
  },
})

const app = defineApp({
  name: 'reports',
  database,
  jobs: [exportJob, sweepJob],
  queues: { reports: { concurrency: 2 } },
  // Short, so that a resume can be watched; 30 s is the default.
  leaseMs: 2_000,
})

export default app

async function hasEnded(jobId: string): Promise<boolean> {
  const job = await app.job(jobId).get()
  // A job that is not there any more ended so long ago that its retention is over.
  return job === undefined || ['completed', 'cancelled', 'discarded'].includes(job.state)
}
