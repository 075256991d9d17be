import type { Grant, LockCall } from './locks.ts'

/** A time in which an owner could prove that it held a lock. */
export interface Window {
  readonly grant: Grant
  readonly fromMs: number
  readonly toMs: number
}

/**
 * The windows of one resource, in the order of their start, each cut down to what is certain: it starts when the grant
 * was known, and ends with the first attempt to release it, whatever came of that, or when the lease would be over if it
 * had been counted from before the request; less a margin. An extension that was not confirmed may have shortened the lease.
 */
export function windowsOf(calls: readonly LockCall[], marginMs: number): readonly Window[] {
  return calls
    .flatMap((call): readonly Window[] => {
      if (call.kind !== 'acquire' || call.outcome !== 'ok' || call.token === undefined) return []
      const grant: Grant = { ...call, token: call.token }
      const toMs = endOf(grant, calls) - marginMs
      return toMs > grant.endedMs ? [{ grant, fromMs: grant.endedMs, toMs }] : []
    })
    .sort((a, b) => a.fromMs - b.fromMs)
}

function endOf(grant: Grant, calls: readonly LockCall[]): number {
  const own = calls.filter((call) => call.kind !== 'acquire' && call.token === grant.token)
  const releases = own.filter(({ kind }) => kind === 'release').map(({ invokedMs }) => invokedMs)
  // An owner that asks again is given the lock that it has, and its lease counts from the grant, whose answer may be lost.
  const starts = calls.flatMap((call) => {
    if (call.kind !== 'acquire' || call.owner !== grant.owner || call.invokedMs > grant.invokedMs) return []
    return call.token === grant.token || call.outcome === 'unknown' ? call.invokedMs + call.leaseMs : []
  })
  let [endMs, doubtMs] = [Math.min(...starts), Number.POSITIVE_INFINITY]
  for (const call of [...own].sort((a, b) => a.invokedMs - b.invokedMs)) {
    if (call.kind !== 'extend') continue
    const extendedMs = call.invokedMs + call.leaseMs
    if (call.outcome === 'ok' && call.extended === true) endMs = extendedMs
    // Also if it was refused: that may be the answer to a second try, which came when the lease that the first left was over.
    else doubtMs = Math.min(doubtMs, extendedMs)
  }
  return Math.min(...releases, endMs, doubtMs)
}
