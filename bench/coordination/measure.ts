import { percentile } from '../measure/statistics.ts'
import type { Contender, Waiter } from './contender.ts'

/** Runs `operation` for `ms` in so many lanes, each starting the next when its last has ended; gives how many a second. */
export async function rateOf(
  operation: (n: number) => Promise<void>,
  lanes: number,
  ms: number,
  from: number,
): Promise<number> {
  const startMs = performance.now()
  let done = 0
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      for (let n = from + lane; performance.now() - startMs < ms; n += lanes) {
        await operation(n)
        done += 1
      }
    }),
  )
  return (done / (performance.now() - startMs)) * 1000
}

export interface HandOver {
  readonly p50: number
  readonly p99: number
}

/** How long a lock lies idle between two holders, in milliseconds: from the beginning of a release to the next grant. */
export async function handOver(
  contender: Contender,
  waiters: number,
  grants: number,
): Promise<HandOver | undefined> {
  const open = contender.openWaiter?.bind(contender)
  if (!open) return undefined
  const all: Waiter[] = await Promise.all(
    Array.from({ length: waiters }, async () => await open('bench/hot')),
  )
  const idleMs: number[] = []
  let releasedMs: number | undefined
  await Promise.all(
    all.map(async (waiter) => {
      while (idleMs.length < grants) {
        const release = await waiter.acquire()
        if (releasedMs !== undefined) idleMs.push(performance.now() - releasedMs)
        // Held for a moment, in which all the others have come to wait.
        await new Promise((resolve) => setTimeout(resolve, 5))
        releasedMs = performance.now()
        await release()
        // Somebody else's turn.
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }),
  )
  await Promise.all(all.map(async (waiter) => await waiter.close()))
  return { p50: percentile(idleMs, 50), p99: percentile(idleMs, 99) }
}
