import type { Announcement, Moment } from './smtp.ts'

/** What a process of the shop tells the supervisor. */
export type Message =
  | { readonly type: 'ready' }
  | { readonly type: 'confirmed'; readonly orderId: string; readonly jobId: string }
  | { readonly type: 'rolled back'; readonly orderId: string; readonly jobId: string }
  | { readonly type: 'refused'; readonly jobId: string; readonly fencingToken: string }
  | { readonly type: 'produced' }

/** A worker was killed at a moment of `mail` that was seen at a mail server. */
export interface Kill {
  readonly worker: string
  readonly mail: Announcement
  readonly moment: Moment
}

/** A worker was stopped at a moment of `mail`, and woken after its lease. */
export interface Pause {
  readonly worker: string
  readonly mail: Announcement
  readonly moment: Moment
  readonly wokenAt: Date
  /** True if the job was completed elsewhere before the worker was woken. */
  readonly overtaken: boolean
}

/** A write of a worker that no longer had the lease. */
export interface RefusedWrite {
  readonly worker: string
  readonly jobId: string
  readonly fencingToken: string
}

/** Everything seen from outside the database while the shop runs. */
export interface RunRecord {
  /** Job of each order whose commit was acknowledged, by order. */
  readonly confirmed: Map<string, string>
  /** Job of each order whose transaction was rolled back on purpose, by order. */
  readonly rolledBack: Map<string, string>
  readonly kills: Kill[]
  readonly pauses: Pause[]
  readonly refused: RefusedWrite[]
  /** Processes that ended although nobody had asked them to. */
  readonly deaths: string[]
}

export function createRecord(): RunRecord {
  return { confirmed: new Map(), rolledBack: new Map(), kills: [], pauses: [], refused: [], deaths: [] }
}

/** Enters what a process said; `worker` is who said it. */
export function enter(record: RunRecord, worker: string, message: Message): void {
  if (message.type === 'confirmed') record.confirmed.set(message.orderId, message.jobId)
  if (message.type === 'rolled back') record.rolledBack.set(message.orderId, message.jobId)
  if (message.type === 'refused') record.refused.push({ ...message, worker })
}
