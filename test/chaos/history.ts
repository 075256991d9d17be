import type { AuditRow, CheckpointRow, CommitRow, EffectRow, JobRow } from './audit.ts'
import type { Life } from './fleet.ts'
import type { Entry } from './history-log.ts'
import type { Disturbance, Kill, Outage } from './stage.ts'

/** All that is known of a run when it is over. Times are the machine's monotonic clock unless the name says otherwise. */
export interface History {
  readonly workers: readonly { readonly life: Life; readonly entry: Entry }[]
  readonly producers: readonly { readonly life: Life; readonly entry: Entry }[]
  readonly audit: readonly AuditRow[]
  readonly jobs: readonly JobRow[]
  /** Business keys of the rows that the producers' own statements inserted. */
  readonly orders: ReadonlySet<string>
  readonly heldKeys: number
  /** Every row of the ledger that was written, in order. */
  readonly effects: readonly EffectRow[]
  /** What the provider noted: calls and questions. */
  readonly provider: readonly Entry[]
  /** Business rows that handlers wrote in their commits. */
  readonly commits: readonly CommitRow[]
  /** What the counters add up to that those commits bumped. */
  readonly counted: number
  /** Every checkpoint and progress that was written, in order. */
  readonly checkpoints: readonly CheckpointRow[]
  readonly kills: readonly Kill[]
  readonly outages: readonly Outage[]
  readonly disturbances: readonly Disturbance[]
  /** Ends of processes that nobody ordered. */
  readonly unordered: readonly Life[]
  /** Outcomes as they were seen during the run. */
  readonly samples: ReadonlyMap<string, string>
  readonly finalSamples: ReadonlyMap<string, string>
  readonly clockOffsetMs: number
  readonly drained: boolean
  readonly left: number
  readonly problems: readonly string[]
}

/** What is known of one job, from all sources. */
export interface Case {
  readonly row: JobRow
  readonly audit: AuditRow[]
  readonly starts: Start[]
}

export interface Start {
  readonly token: string
  readonly attempt: number
  readonly t: number
  readonly life: Life
}

export function casesOf({ jobs, audit, workers }: History): ReadonlyMap<string, Case> {
  const cases = new Map<string, Case>(jobs.map((row) => [row.id, { row, audit: [], starts: [] }]))
  for (const row of audit) cases.get(row.job)?.audit.push(row)
  for (const { life, entry } of workers) {
    if (entry.kind !== 'start') continue
    const start = { token: String(entry['token']), attempt: Number(entry['attempt']), t: entry.t, life }
    cases.get(String(entry['job']))?.starts.push(start)
  }
  return cases
}

export interface Enqueues {
  /** By business key: ids that were answered, with the status. */
  readonly acknowledged: ReadonlyMap<
    string,
    readonly { readonly id: string; readonly status: string; readonly entry: Entry }[]
  >
  readonly refused: ReadonlySet<string>
  readonly unknown: ReadonlySet<string>
  readonly intents: ReadonlyMap<string, { readonly way: string; readonly t: number }>
  readonly counts: Readonly<Record<string, number>>
}

export function enqueuesOf({ producers }: History): Enqueues {
  const acknowledged = new Map<string, { id: string; status: string; entry: Entry }[]>()
  const refused = new Set<string>()
  const unknown = new Set<string>()
  const intents = new Map<string, { way: string; t: number }>()
  const open = new Set<string>()
  const counts: Record<string, number> = {
    intended: 0,
    acknowledged: 0,
    existing: 0,
    rolledBack: 0,
    failed: 0,
    unknown: 0,
    dead: 0,
  }
  const add = (name: string, count = 1) => (counts[name] = (counts[name] ?? 0) + count)
  for (const { entry } of producers) {
    const keys = (entry['keys'] ?? []) as readonly string[]
    if (entry.kind === 'intent') {
      add('intended', keys.length)
      for (const key of keys) {
        intents.set(key, { way: String(entry['way']), t: entry.t })
        open.add(key)
      }
      continue
    }
    if (!['ack', 'rolled-back', 'failed', 'unknown'].includes(entry.kind)) continue
    for (const [index, key] of keys.entries()) {
      open.delete(key)
      if (entry.kind === 'ack') {
        const id = String((entry['ids'] as readonly string[])[index])
        const status = String((entry['statuses'] as readonly string[])[index])
        acknowledged.set(key, [...(acknowledged.get(key) ?? []), { id, status, entry }])
        add(status === 'existing' ? 'existing' : 'acknowledged')
      } else if (entry.kind === 'unknown') {
        unknown.add(key)
        add('unknown')
      } else {
        refused.add(key)
        add(entry.kind === 'failed' ? 'failed' : 'rolledBack')
      }
    }
  }
  for (const key of open) unknown.add(key)
  add('dead', open.size)
  // Of one key that was tried several times, the doubtful try decides what may be.
  for (const key of refused) if (unknown.has(key) || acknowledged.has(key)) refused.delete(key)
  return { acknowledged, refused, unknown, intents, counts }
}
