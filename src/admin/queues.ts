import { checkName } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { checkReason } from './reason.ts'
import { listQueueNames } from './sql/list-queue-names.ts'
import { listQueueRows, type QueueRow } from './sql/list-queues.ts'
import { pauseQueueRow } from './sql/pause-queue.ts'
import { resumeQueueRow } from './sql/resume-queue.ts'

/** All known queues with what waits in them, by name. */
export async function listQueues(database: Database): Promise<readonly QueueRow[]> {
  return await run(database, listQueueRows, {})
}

/**
 * Pauses a queue for all workers, over restarts, until it is resumed. Executing jobs go on.
 *
 * @throws {InvalidArgumentError} Nobody knows the queue, or the reason cannot be right. Nothing was changed.
 */
export async function pauseQueue(
  database: Database,
  name: string | undefined,
  options: { readonly reason?: string | undefined; readonly configured?: Iterable<string> } = {},
): Promise<{ readonly pausedAt: Date }> {
  const reason = checkReason(options.reason) ?? null
  const queue = await knownQueue(database, name, options.configured)
  return await runOne(database, pauseQueueRow, { queue, reason })
}

/**
 * Resumes a queue and wakes its workers at once.
 *
 * @returns False if it was not paused.
 * @throws {InvalidArgumentError} Nobody knows the queue. Nothing was changed.
 */
export async function resumeQueue(
  database: Database,
  name: string | undefined,
  options: { readonly configured?: Iterable<string> } = {},
): Promise<boolean> {
  const queue = await knownQueue(database, name, options.configured)
  return (await run(database, resumeQueueRow, { queue })).length > 0
}

const NAMES_SHOWN = 10

/** A mistyped name would otherwise be paused, and the queue that was meant would go on. */
async function knownQueue(
  database: Database,
  name: string | undefined,
  configured: Iterable<string> = [],
): Promise<string> {
  const queue = checkName('queue', name)
  const rows = await run(database, listQueueNames, {})
  const names = [...new Set([...configured, ...rows.map((row) => row.name)])].sort()
  if (names.includes(queue)) return queue
  const known = names.length === 0 ? 'none' : names.slice(0, NAMES_SHOWN).join(', ')
  const more = names.length > NAMES_SHOWN ? ` and ${names.length - NAMES_SHOWN} more` : ''
  throw new InvalidArgumentError({
    field: 'queue',
    problem: `"${queue}" is unknown: no job, worker or application names it; known are: ${known}${more}`,
  })
}
