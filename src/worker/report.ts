import type { EventHub } from '../base/events.ts'
import type { ClaimedJob } from './claimed-job.ts'
import type { Settlement } from './outbox.ts'
import type { CommittedOutcome } from './outcome.ts'
import { factsOf } from './traffic.ts'

/** Tells, by events, that a handler's own commit has completed its job. */
export function reportCommitted(
  events: EventHub,
  job: ClaimedJob,
  { late, altered }: CommittedOutcome,
  durationMs: number,
): void {
  if (altered !== undefined) events.emit('result.altered', { ...factsOf(job), problem: altered })
  if (events.wants('job.completed')) events.emit('job.completed', { ...factsOf(job), durationMs, late })
}

/** Tells, by events, what PostgreSQL answered to a settlement. */
export function reportSettlement(
  events: EventHub,
  { job, outcome, durationMs, error }: Settlement,
  answer: 'recorded' | 'refused' | 'cancelled',
): void {
  if (answer === 'refused') return events.emit('write.refused', { ...factsOf(job), write: outcome.to })
  if (answer === 'cancelled')
    return events.emit('job.cancelled', { ...factsOf(job), reason: 'cancelled while it ran' })
  switch (outcome.to) {
    case 'completed':
      if (outcome.altered !== undefined)
        events.emit('result.altered', { ...factsOf(job), problem: outcome.altered })
      if (events.wants('job.completed'))
        events.emit('job.completed', { ...factsOf(job), durationMs, late: outcome.late })
      return
    case 'scheduled':
      if (outcome.ended === 'snoozed')
        return events.emit('job.snoozed', { ...factsOf(job), inMs: outcome.delayMs })
      return events.emit('attempt.failed', {
        ...factsOf(job),
        error,
        timedOut: outcome.ended === 'timed-out',
        retryInMs: outcome.delayMs,
      })
    case 'discarded':
      return events.emit('job.discarded', { ...factsOf(job), reason: outcome.reason, error })
    case 'cancelled':
      return events.emit('job.cancelled', { ...factsOf(job), reason: outcome.reason })
    case 'parked':
      return events.emit('job.parked', { ...factsOf(job), reason: outcome.reason })
    case 'ready':
      return
  }
}
