import { type BulkSettler, MAX_BATCH } from './bulk-settler.ts'
import type { Outbox } from './outbox.ts'
import { FEW, type Pace } from './pace.ts'
import type { Slots } from './slots.ts'

/** What the exchange is to do next. Nothing here does anything. */

/** Longest that an outcome waits for others to be recorded with, while there is other work at hand. */
const LINGER_MS = 4
/** Completions do not wait if so many of whole leases are there. */
const LINGER_ENOUGH = 100
/** What waits in a buffer for so long without a slot moving goes back. */
export const STALE_BUFFER_MS = 100

/** What a claim is to ask for. */
export interface Wants {
  readonly queues: readonly string[]
  readonly wanted: readonly number[]
  readonly free: readonly number[]
}

/** What the rules look at. */
export interface Situation {
  readonly slots: readonly Slots[]
  readonly outbox: Outbox
  readonly pace: Pace
  readonly isStopping: () => boolean
}

/** As much as the slots want, of the queues that are due; at most a batch. */
export function wantsOf({ slots, pace }: Situation, nowMs: number): Wants | undefined {
  const asking = slots.filter((s) => pace.isDue(s.queue, nowMs) && s.wanted > 0)
  if (asking.length === 0) return undefined
  let left = MAX_BATCH
  // Free slots of every queue come before what is claimed ahead for any.
  const sure = asking.map((s) => take(Math.min(s.free, s.wanted)))
  const wanted = asking.map((s, index) => {
    const certain = sure[index] as number
    if (certain > 0 && pace.asksFew(s.queue)) return Math.min(certain, FEW)
    return certain + take(s.wanted - certain)
  })
  return { queues: asking.map((s) => s.queue), wanted, free: asking.map((s) => s.free) }

  function take(count: number): number {
    const taken = Math.min(count, left)
    left -= taken
    return taken
  }
}

/** Outcomes wait for company only while the slots have enough to do meanwhile. */
export function shouldSettle({ outbox, slots, isStopping }: Situation, bulk: BulkSettler): boolean {
  if (outbox.size === 0) return false
  if (outbox.whole >= LINGER_ENOUGH) return !bulk.isBusy
  if (outbox.size >= MAX_BATCH || outbox.oldestMs() >= LINGER_MS || isStopping()) return true
  return !slots.some((s) => s.buffered > 0 || (s.ahead > 0 && s.running > 0))
}

/** How long there is nothing to do, unless somebody wakes. */
export function sleepMs(
  { outbox, slots, pace }: Situation,
  bulk: BulkSettler,
  nowMs: number,
  mayClaim: boolean,
): number {
  const asking = !mayClaim ? [] : slots.filter((s) => s.wanted > 0).map((s) => s.queue)
  const lookMs = pace.nextLookAtMs(asking) - nowMs
  const lingerMs = outbox.size > 0 && !bulk.isBusy ? LINGER_MS - outbox.oldestMs() : Number.POSITIVE_INFINITY
  const staleMs = slots.some((s) => s.buffered > 0) ? STALE_BUFFER_MS / 2 : Number.POSITIVE_INFINITY
  return Math.max(0.5, Math.min(lookMs, lingerMs, staleMs, 60_000))
}
