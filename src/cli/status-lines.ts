import type { Status } from '../admin/status.ts'
import { at, inTime, span } from '../admin/time-text.ts'
import { oneLine } from '../base/one-line.ts'
import type { Output } from './output.ts'
import { queueTable } from './queue-table.ts'

/** What the state of a schema means, worded to follow it. */
export const schemaSentences = {
  current: 'up to date',
  missing: 'missing; run "holdfast migrate"',
  older: 'too old; run "holdfast migrate"',
  newer: 'changed by a newer release, in a way that this one can work with',
  'newer-and-breaking': 'changed by a newer release; deploy that one',
} as const

/** The status as one screen for people. */
export function statusLines(status: Status, output: Output): readonly string[] {
  const { schema, now, nextDueAt } = status
  const due =
    nextDueAt === null
      ? 'none'
      : `${status.scheduled}, next due ${at(nextDueAt)} (${nextDueAt > now ? inTime(nextDueAt, now) : 'now'})`
  return [
    `schema "${oneLine(schema.name)}": version ${schema.version}, ${schemaSentences[schema.state]}`,
    `scheduled: ${due}`,
    `discarded, waiting for a decision: ${status.discarded}${status.discarded > 0n ? '; see "holdfast jobs list --state discarded"' : ''}`,
    '',
    output.heading('workers'),
    ...workerTable(status, output),
    '',
    output.heading('queues'),
    ...queueTable(status.queues, output),
    ...parkedLines(status, output),
    ...unservedLines(status, output),
  ]
}

function workerTable({ workers }: Status, output: Output): readonly string[] {
  return output.table(
    workers,
    [
      { title: 'id', value: (worker) => worker.id, right: true },
      { title: 'name', value: (worker) => worker.name },
      { title: 'app', value: (worker) => `${worker.app} ${worker.version}` },
      { title: 'alive', value: (worker) => (worker.isAlive ? 'yes' : 'no') },
      { title: 'heartbeat', value: (worker) => `${span(Number(worker.heartbeatAgeMs))} ago`, right: true },
      { title: 'executing', value: (worker) => worker.executing, right: true },
      { title: 'serves', value: (worker) => served(worker.queues) },
    ],
    'no worker is alive; start one with "holdfast worker"',
  )
}

function served(queues: unknown): string {
  return (queues as readonly { readonly name: string; readonly concurrency: number }[])
    .map(({ name, concurrency }) => `${name} (${concurrency})`)
    .join(', ')
}

function parkedLines({ parked }: Status, output: Output): readonly string[] {
  if (parked.length === 0) return []
  return [
    '',
    output.heading('parked: waiting for a worker that can run them'),
    ...output.table(
      parked,
      [
        { title: 'jobs', value: (row) => row.jobs, right: true },
        { title: 'name', value: (row) => row.name },
        { title: 'queue', value: (row) => row.queue },
        { title: 'since', value: (row) => at(row.since) },
        { title: 'reason', value: (row) => row.reason },
      ],
      '',
    ),
  ]
}

function unservedLines({ unserved }: Status, output: Output): readonly string[] {
  if (unserved.length === 0) return []
  return [
    '',
    output.heading('jobs in queues that nobody serves'),
    ...unserved.map(({ name, available, scheduled, parked }) => {
      const jobs = available + scheduled + parked
      return `  ${oneLine(name)}: ${jobs}; serve it, or: holdfast jobs move --from-queue "${oneLine(name)}" --all --queue …`
    }),
  ]
}
