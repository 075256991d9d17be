import type { PartialId, TenantSpace } from './storage.ts'

export interface SweepOptions {
  /** How long a partial file is left alone after the last write to it. */
  readonly graceMs: number
  /** True for a job that will never run again. */
  readonly hasEnded: (jobId: string) => Promise<boolean>
}

/**
 * Removes what exports left behind that were cancelled, discarded or overtaken. The rule: a partial file, of this tenant,
 * not written to for `graceMs`, whose job has ended. An unfinished job may need its file, however old: it resumes from it.
 *
 * @returns What was removed.
 */
export async function sweepPartials(
  space: TenantSpace,
  { graceMs, hasEnded }: SweepOptions,
): Promise<readonly PartialId[]> {
  const removed: PartialId[] = []
  for (const { id, modifiedAt } of await space.partials()) {
    const isYoung = Date.now() - modifiedAt.getTime() < graceMs
    if (isYoung || !(await hasEnded(id.jobId))) continue
    await space.removePartial(id)
    removed.push(id)
  }
  return removed
}
