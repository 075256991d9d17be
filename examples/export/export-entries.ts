import type { JobContext } from 'holdfast'
import { readEntries, readExtent, toCsv } from './entries.ts'
import type { PartialFile, PartialId, TenantSpace } from './storage.ts'

/** The unit of work: after each, the export can be stopped, killed and resumed. */
const ROWS_PER_UNIT = 1_000

/** What is exported, and how much of it is on disk: all that the next attempt needs. */
interface Progress {
  readonly lastId: string
  readonly total: number
  readonly afterId: string
  readonly rows: number
  readonly bytes: number
  /** The file that holds the rows. */
  readonly partial: PartialId
}

export interface ExportRequest {
  readonly tenant: string
  /** Names the export for the business: one more export is one more id. */
  readonly exportId: string
}

export interface Exported {
  readonly key: string
  readonly rows: number
  readonly bytes: number
}

/** What the storage effect is for: two tenants' exports of one id are two, and `a` with `b:c` is not `a:b` with `c`. */
export function businessKey({ tenant, exportId }: ExportRequest): string {
  return JSON.stringify(['export', tenant, exportId])
}

/**
 * Writes a tenant's entries to a partial file, a unit at a time, and publishes it. Each unit is on disk before its
 * checkpoint is taken, so an attempt that follows finds at least what its checkpoint says, and cuts off what is more.
 */
export async function exportEntries(
  ctx: JobContext<object, 'store:export'>,
  request: ExportRequest,
  space: TenantSpace,
): Promise<Exported> {
  const { id, fencingToken } = ctx.job
  const partial = {
    key: `exports/${request.exportId}.csv`,
    jobId: id,
    fencingToken: String(fencingToken),
  }
  const saved = ctx.job.checkpoint as Progress | undefined
  const isWritten = saved !== undefined && saved.rows === saved.total
  // Its file may be published already: there is nothing to write, and `publish` knows what to make of it.
  const end = isWritten ? saved : await writeRest(ctx, request, { space, partial, saved })
  await ctx.effect('store:export', { key: businessKey(request), ifUncertain: 'repeat' }, async () => {
    await space.publish(end.partial)
  })
  return { key: partial.key, rows: end.rows, bytes: end.bytes }
}

interface Destination {
  readonly space: TenantSpace
  readonly partial: PartialId
  readonly saved: Progress | undefined
}

async function writeRest(
  ctx: JobContext,
  { tenant }: ExportRequest,
  { space, partial, saved }: Destination,
): Promise<Progress> {
  const resumed = saved && (await space.continuePartial(partial, { id: saved.partial, bytes: saved.bytes }))
  const file = resumed ?? (await space.createPartial(partial))
  try {
    let progress: Progress =
      saved !== undefined && resumed !== undefined
        ? { ...saved, partial }
        : {
            ...(await ctx.transaction((tx) => readExtent(tx, tenant))),
            afterId: '0',
            rows: 0,
            bytes: 0,
            partial,
          }
    ctx.log.info('export begins', { attempt: ctx.job.attempt, fromRow: progress.rows, of: progress.total })
    while (progress.rows < progress.total) {
      // A timeout, a cancel or a stop ends it between two units.
      ctx.signal.throwIfAborted()
      progress = await writeUnit(ctx, { tenant, file, progress })
      await ctx.checkpoint(progress)
      await ctx.progress(progress.rows / progress.total, `${progress.rows} of ${progress.total} rows`)
      // Nobody needs the earlier attempt's file once the checkpoint speaks of this one's.
      if (saved !== undefined && saved.partial.fencingToken !== partial.fencingToken)
        await space.removePartial(saved.partial)
    }
    return progress
  } finally {
    await file.close()
  }
}

async function writeUnit(
  ctx: JobContext,
  {
    tenant,
    file,
    progress,
  }: { readonly tenant: string; readonly file: PartialFile; readonly progress: Progress },
): Promise<Progress> {
  const { afterId, lastId } = progress
  const entries = await ctx.transaction((tx) =>
    readEntries(tx, tenant, { afterId, lastId, limit: ROWS_PER_UNIT }),
  )
  const last = entries.at(-1)
  // Rows went away since the export began.
  if (last === undefined) return { ...progress, total: progress.rows }
  await file.append(toCsv(entries))
  return { ...progress, afterId: last.id, rows: progress.rows + entries.length, bytes: file.bytes }
}
