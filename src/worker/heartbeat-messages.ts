import type { PgHostConfig } from '../adapters/pg-hosts.ts'
import type { CancelledJob } from './lease-keeper.ts'

/** What the heartbeat thread is started with. */
export interface HeartbeatStart {
  readonly hosts: readonly PgHostConfig[]
  readonly pooler: boolean
  readonly statement: string
  readonly workerId: string
  readonly leaseMs: number
  /** How long the event loop may stand still before it is told, in milliseconds. */
  readonly blockedAfterMs: number
  readonly shared: SharedArrayBuffer
  readonly endProcessWhenStuck: boolean
}

/** Places in the shared array of 64-bit floats, in milliseconds of {@link sharedNowMs}. */
export const shared = {
  /** When the event loop last turned. */
  turnedAt: 0,
  /** Earliest moment by which a running attempt has to be over, timeout and grace included; 0: none. */
  hardDeadline: 1,
  length: 2,
} as const

export type HeartbeatMessage =
  /** The first renewal was answered. */
  | { readonly kind: 'beating' }
  | { readonly kind: 'cancelled'; readonly jobs: readonly CancelledJob[] }
  | { readonly kind: 'lost'; readonly why: string }
  | { readonly kind: 'error'; readonly message: string; readonly retryInMs: number }
  | { readonly kind: 'blocked'; readonly blockedMs: number }

/** Milliseconds of the machine's monotonic clock: the same in all threads, unlike `performance.now()`. */
export function sharedNowMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000
}
