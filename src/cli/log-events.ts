import type { EventMap, EventName, Events, JobFacts } from '../base/events.ts'
import type { LogFields, Logger } from '../base/logger.ts'

type Level = keyof Logger

interface Line<N extends EventName> {
  readonly level: Level
  readonly text: (event: EventMap[N]) => string
}

type Lines = { readonly [N in EventName]: Line<N> }

const job = ({ jobName, jobId, attempt }: Partial<JobFacts>) =>
  jobId === undefined ? 'outside jobs' : `job ${jobId} (${jobName}), attempt ${attempt}`
const seconds = (ms: number) => `${Math.round(ms / 100) / 10} s`

const CHOICE = {
  ask: 'a person has to decide: holdfast effects list',
  repeat: 'it is repeated with the same idempotency key',
  confirm: 'the provider is asked',
} as const

/** What the command's log says of each event. */
const lines: Lines = {
  'jobs.enqueued': { level: 'debug', text: ({ count, queue }) => `${count} jobs enqueued to ${queue}` },
  'jobs.claimed': { level: 'debug', text: ({ count }) => `${count} jobs claimed` },
  'attempt.started': { level: 'debug', text: (event) => `${job(event)} started` },
  'job.completed': {
    level: 'debug',
    text: (event) => `${job(event)} completed${event.late ? ' after it was told to stop' : ''}`,
  },
  'attempt.failed': {
    level: 'warn',
    text: (event) =>
      `${job(event)} ${event.timedOut ? 'timed out' : 'failed'}; the next follows in ${seconds(event.retryInMs)}`,
  },
  'effect.uncertain': {
    level: 'warn',
    text: (event) =>
      `${job(event)}: whether ${event.effect} "${event.key}" happened is not known; ${CHOICE[event.choice]}`,
  },
  'result.altered': {
    level: 'warn',
    text: (event) => `${job(event)} gave a result that could not be stored as it was: ${event.problem}`,
  },
  'job.discarded': {
    level: 'error',
    text: (event) => {
      const how = event.reason === 'effect-uncertain' ? 'effects list --job' : 'jobs retry'
      return `${job(event)} discarded (${event.reason}); decide: holdfast ${how} ${event.jobId}`
    },
  },
  'job.cancelled': { level: 'info', text: (event) => `${job(event)} cancelled: ${event.reason}` },
  'job.snoozed': { level: 'debug', text: (event) => `${job(event)} snoozed for ${seconds(event.inMs)}` },
  'jobs.handedBack': { level: 'debug', text: ({ count, why }) => `${count} jobs handed back (${why})` },
  'job.parked': { level: 'warn', text: (event) => `${job(event)} parked: ${event.reason}` },
  'write.refused': {
    level: 'warn',
    text: (event) => `${job(event)} is not this worker's any more; its end was refused`,
  },
  'lease.lost': {
    level: 'error',
    text: ({ workerId, jobs, why }) =>
      `worker ${workerId} lost its leases (${why}); ${jobs} jobs go on elsewhere`,
  },
  'jobs.rescued': {
    level: 'warn',
    text: ({ requeued, discarded, workerIds }) =>
      `jobs of lost workers ${workerIds.join(', ')} taken back: ${requeued} requeued, ${discarded} discarded`,
  },
  'handler.abandoned': {
    level: 'error',
    text: (event) => `${job(event)} does not return; its handler was abandoned`,
  },
  'loop.blocked': {
    level: 'warn',
    text: ({ blockedMs }) => `the event loop stood still for ${seconds(blockedMs)}`,
  },
  'wakeup.degraded': {
    level: 'warn',
    text: () => 'not listening to notifications; jobs are found by polling',
  },
  'wakeup.restored': {
    level: 'info',
    text: ({ downMs }) => `listening to notifications again after ${seconds(downMs)}`,
  },
  'worker.error': {
    level: 'error',
    text: ({ during, retryInMs }) => `${during} failed; tried again in ${seconds(retryInMs)}`,
  },
  'worker.started': {
    level: 'info',
    text: ({ workerId, queues }) => `worker ${workerId} started; it serves ${queues.join(', ')}`,
  },
  'worker.stopped': { level: 'info', text: ({ workerId }) => `worker ${workerId} stopped` },
  'listener.failed': {
    level: 'error',
    text: ({ event }) => `a listener of "${event}" failed; jobs are not affected`,
  },
}

/** Levels of which nothing is written need not be listened to: the facts of a hot path are only put together for a listener. */
export interface LogEventsOptions {
  readonly least: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Whether lines carry all facts of the event, for machines; the text alone, and the error, is for people. */
  readonly withFacts: boolean
}

const order = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** Writes a line for each event of an application. Returns a function that ends it. */
export function logEvents(
  events: Events,
  logger: Logger,
  { least, withFacts }: LogEventsOptions,
): () => void {
  const ends = (Object.keys(lines) as EventName[]).flatMap((name) => {
    const line = lines[name] as Line<typeof name>
    if (order.indexOf(line.level) < order.indexOf(least)) return []
    return [
      events.on(name, (event) =>
        logger[line.level](line.text(event as never), withFacts ? { event: name, ...event } : errorOf(event)),
      ),
    ]
  })
  return () => {
    for (const end of ends) end()
  }
}

function errorOf(event: object): LogFields {
  return 'error' in event && event.error !== undefined ? { error: event.error } : {}
}
