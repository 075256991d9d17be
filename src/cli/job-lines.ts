import type { JobDetails } from '../admin/show-job.ts'
import type { AttemptRow } from '../admin/sql/list-attempts.ts'
import { at, span } from '../admin/time-text.ts'
import { oneLine } from '../base/one-line.ts'
import type { Output } from './output.ts'

/** A job as text for people: the sentence first, then the facts, then what happened when, then the data. */
export function jobLines(details: JobDetails, output: Output): readonly string[] {
  const { facts, explanation, attempts, left } = details
  const rows: readonly (readonly [string, string | null])[] = [
    ['state', facts.state ?? 'unknown'],
    ['why', explanation],
    ['name', facts.name],
    ['queue', `${facts.queue}, priority ${facts.priority}`],
    ['tenant', facts.tenant === '' ? null : facts.tenant],
    ['attempts', `${facts.attempts ?? 'unknown'} of ${facts.maxAttempts}`],
    ['progress', progress(left)],
    ['unique key', facts.uniqueKey],
    ['contract', facts.contract],
    ['worker', facts.workerId === null ? null : `${facts.workerId} (${facts.workerName ?? 'gone'})`],
    ['lease until', facts.leaseUntil === null ? null : at(facts.leaseUntil)],
    ['fencing token', facts.fencingToken],
    ['reason', facts.reason],
  ]
  const width = Math.max(...rows.map(([label]) => label.length))
  return [
    output.heading(`job ${facts.id}`),
    ...rows.flatMap(([label, text]) => (text === null ? [] : [`  ${label.padEnd(width)}  ${oneLine(text)}`])),
    '',
    output.heading('timeline'),
    ...timeline(facts, attempts).map((line) => `  ${oneLine(line)}`),
    ...effects(details, output),
    ...data(output, 'input', facts.input),
    ...data(output, 'context', facts.context),
    ...data(output, 'checkpoint', left?.value ?? null),
    ...data(output, 'result', facts.result),
    ...data(output, 'error', facts.error),
  ]
}

function progress(left: JobDetails['left']): string | null {
  if (left === undefined || left.fraction === null) return null
  const note = left.note === null ? '' : `: ${left.note}`
  return `${Math.floor(left.fraction * 100)} % at ${at(left.progressAt)}${note}`
}

function effects({ effects: list }: JobDetails, output: Output): readonly string[] {
  if (list.length === 0) return []
  const lines = list.map(({ name, key, state, held, calls, intendedAt }) => {
    const is = held ? 'under way' : state
    return `  ${at(intendedAt)}  ${oneLine(`${name} "${key}"`)}  ${is}, calls: ${calls}`
  })
  return ['', output.heading('effects'), ...lines]
}

/** Enqueue, claims and ends are facts of their own: a job that executes has delivered nothing yet. */
function timeline(facts: JobDetails['facts'], attempts: readonly AttemptRow[]): readonly string[] {
  const lines = [
    `${at(facts.enqueuedAt)}  enqueued${facts.askedAt === null ? '' : `, to run at ${at(facts.askedAt)}`}`,
  ]
  for (const attempt of attempts) {
    const { workerId, durationMs } = attempt
    const by = workerId === null ? '' : ` on worker ${workerId}`
    const after = durationMs === null ? '' : ` after ${span(durationMs)}`
    lines.push(
      `${at(attempt.endedAt)}  attempt ${attempt.attempt} ended: ${attempt.ended}${by}${after}${said(attempt.error)}`,
    )
  }
  if (facts.claimedAt !== null)
    lines.push(
      `${at(facts.claimedAt)}  attempt ${facts.attempts} claimed by worker ${facts.workerId}; not ended yet`,
    )
  if (facts.finishedAt !== null) {
    const after = facts.durationMs === null ? '' : ` after ${span(facts.durationMs)}`
    lines.push(
      `${at(facts.finishedAt)}  ${facts.state} in attempt ${facts.attempts}${after}${said(facts.error)}`,
    )
  }
  return lines
}

function said(error: string | null): string {
  if (error === null) return ''
  const { message } = JSON.parse(error) as { readonly message?: unknown }
  return typeof message === 'string' ? `: ${message}` : ''
}

function data(output: Output, title: string, json: string | null): readonly string[] {
  return json === null ? [] : ['', output.heading(title), `  ${oneLine(json)}`]
}
