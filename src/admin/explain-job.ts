import type { JobFactsRow } from './sql/find-job-facts.ts'
import type { Surroundings } from './sql/find-surroundings.ts'
import { ago, at, inTime } from './time-text.ts'

/**
 * Why a job is not running, or what became of it, in one sentence. Pure: all instants, and `now`, are the
 * database's. Of several reasons it names the one that has to go first.
 */
export function explainJob(job: JobFactsRow, around: Surroundings): string {
  switch (job.state) {
    case 'completed':
      return `completed at ${at(job.finishedAt)} in attempt ${job.attempts}${job.isLate ? ', after it was told to stop' : ''}`
    case 'cancelled':
      return `cancelled at ${at(job.finishedAt)}${because(job.reason)}; it never runs again unless you retry it`
    case 'discarded':
      if (job.reason === 'effect-uncertain')
        return `discarded at ${at(job.finishedAt)} because whether an effect happened is not known; find out, then "holdfast effects resolve": "holdfast effects list --job ${job.id}" names it`
      return `discarded at ${at(job.finishedAt)}${because(job.reason)}; it waits for your decision: "holdfast jobs retry ${job.id}", or leave it`
    case 'executing':
      return executing(job)
    case 'scheduled':
    case 'retryable':
      return notDue(job, around)
    case 'available':
      return job.parkedAt === null ? available(job, around) : parked(job, around)
    default:
      return 'no table holds it: a row was deleted by hand; cancel cannot help, enqueue it anew'
  }
}

function executing(job: JobFactsRow): string {
  const { workerId, workerName, attempts, maxAttempts, leaseUntil } = job
  const worker = `worker ${workerId}${workerName === null ? '' : ` (${workerName})`}`
  if (leaseUntil === null || job.isLeaseOver) {
    const since =
      leaseUntil === null ? 'is gone' : `has not renewed its lease, which ended at ${at(leaseUntil)}`
    return `attempt ${attempts} of ${maxAttempts} was executing on ${worker}, which ${since}; any live worker rescues it`
  }
  const cancel = job.reason === null ? '' : '; it was cancelled and ends so, whatever its handler does'
  return `attempt ${attempts} of ${maxAttempts} is executing on ${worker}, whose lease lasts until ${at(leaseUntil)} and is being renewed${cancel}`
}

function notDue(job: JobFactsRow, around: Surroundings): string {
  const what = job.state === 'retryable' ? `attempt ${job.attempts} failed; the next` : 'it'
  const runAt = job.runAt ?? job.now
  if (runAt > job.now) {
    const also =
      around.pausedAt === null ? '' : `, and queue "${job.queue}" is paused${because(around.pauseReason)}`
    return `${what} is not due until ${at(runAt)} (${inTime(runAt, job.now)})${also}`
  }
  if (around.workers === 0) return `${what} is due since ${at(runAt)}, but no worker is alive to start it`
  return `${what} is due since ${at(runAt)} and is about to be moved into the queue`
}

function parked(job: JobFactsRow, around: Surroundings): string {
  const wants =
    job.refusedContract === null
      ? `a worker that knows job "${job.name}"`
      : `a worker whose contract accepts its input (${job.refusedContract} refused it)`
  const paused =
    around.pausedAt === null ? '' : `; queue "${job.queue}" is also paused${because(around.pauseReason)}`
  return `parked since ${at(job.parkedAt)} because ${job.reason}; no attempt was used, it waits for ${wants}${paused}`
}

function available(job: JobFactsRow, around: Surroundings): string {
  const { queue, name } = job
  if (around.pausedAt !== null)
    return `queue "${queue}" is paused since ${at(around.pausedAt)} (${ago(around.pausedAt, job.now)})${because(around.pauseReason)}`
  if (around.workers === 0) return 'no worker is alive: start one with "holdfast worker"'
  if (around.serving === 0)
    return `no live worker serves queue "${queue}": start one, or move the job with "holdfast jobs move ${job.id} --queue …"`
  if (around.knowing === 0)
    return `no live worker of queue "${queue}" knows job "${name}": it waits for a release that does`
  const busy = `${around.executing} of ${around.slots} slots of queue "${queue}" are busy`
  if (around.ahead === 0) return `it is the next of queue "${queue}" to start; ${busy}`
  return `${around.ahead > 10_000 ? 'more than 10000' : around.ahead} job${around.ahead === 1 ? ' is' : 's are'} ahead of it; ${busy}`
}

function because(reason: string | null): string {
  return reason === null || reason === '' ? '' : `: ${reason}`
}
