import { groupBy, type Recorded, spanOf } from '../recorded.ts'
import { windowsOf } from './lock-windows.ts'
import { type Verdict, verdictOf } from './verdict.ts'

export type LockCall = Recorded & { readonly resource: string } & (
    | LockAcquire
    | LockExtend
    | LockRelease
    | LockGuard
  )

export interface LockAcquire {
  readonly kind: 'acquire'
  readonly owner: string
  readonly leaseMs: number
  /** Absent: it was not granted, or nobody knows. */
  readonly token?: bigint | undefined
}

export interface LockExtend {
  readonly kind: 'extend'
  readonly token: bigint
  readonly leaseMs: number
  readonly extended?: boolean | undefined
}

export interface LockRelease {
  readonly kind: 'release'
  readonly token: bigint
  readonly released?: boolean | undefined
}

/** A transaction that asserted `token` and wrote, or a process that looked whether it holds the lock. `passed` false: refused. */
export interface LockGuard {
  readonly kind: 'guard'
  readonly token: bigint
  readonly passed?: boolean | undefined
}

export type Grant = Recorded & LockAcquire & { readonly resource: string; readonly token: bigint }

export interface LockRules {
  /** Taken off the end of each window, in milliseconds: for clocks. Default: 10, one machine. */
  readonly marginMs?: number
  readonly least?: number
}

const LEAST_GRANTS = 25

/**
 * No two owners hold a resource within the windows that they can prove, tokens rise with every grant, and what is guarded
 * by an older token does not pass once a newer one is known.
 */
export function checkLocks(
  calls: readonly LockCall[],
  { marginMs = 10, least = LEAST_GRANTS }: LockRules = {},
): Verdict {
  const grants = calls.filter(isGrant)
  const violations = [...groupBy(calls, ({ resource }) => resource)].flatMap(([resource, ofResource]) => {
    const granted = ofResource.filter(isGrant)
    return [
      ...overlaps(resource, ofResource, marginMs),
      ...tokenOrder(resource, granted, ofResource),
      ...latePasses(resource, granted, ofResource),
    ]
  })
  return verdictOf(
    { checker: 'lock', promise: 'a lock has one holder at a time, and its tokens rise' },
    { violations: [...sharedTokens(grants), ...violations], work: grants.length, least },
  )
}

function isGrant(call: LockCall): call is LockCall & Grant {
  return call.kind === 'acquire' && call.outcome === 'ok' && call.token !== undefined
}

/** Windows in order of their start: one that starts before the longest so far has ended overlaps it. */
function overlaps(resource: string, calls: readonly LockCall[], marginMs: number): readonly string[] {
  const windows = windowsOf(calls, marginMs)
  const found: string[] = []
  for (const [index, window] of windows.entries()) {
    const other = windows
      .slice(0, index)
      .findLast((earlier) => earlier.toMs > window.fromMs && earlier.grant.owner !== window.grant.owner)
    if (other === undefined) continue
    const byMs = Math.min(other.toMs, window.toMs) - window.fromMs
    found.push(
      `two holders of ${resource} for ${byMs.toFixed(1)} ms: ${sayGrant(other.grant)} until ${(other.toMs / 1000).toFixed(4)} s, and ${sayGrant(window.grant)}`,
    )
  }
  return found
}

/** Of grants one after the other: a token never falls, and is the same only for an owner that still held the lock. */
function tokenOrder(
  resource: string,
  grants: readonly Grant[],
  calls: readonly LockCall[],
): readonly string[] {
  const releases = calls.filter(
    (call) => call.kind === 'release' && call.outcome === 'ok' && call.released === true,
  )
  const byEnd = [...grants].sort((a, b) => a.endedMs - b.endedMs)
  const found: string[] = []
  for (const grant of [...grants].sort((a, b) => a.invokedMs - b.invokedMs)) {
    const earlier = byEnd.filter(({ endedMs }) => endedMs < grant.invokedMs)
    const highest = earlier.reduce<Grant | undefined>(
      (most, one) => (most === undefined || one.token > most.token ? one : most),
      undefined,
    )
    if (highest === undefined || grant.token > highest.token) continue
    const wasReleased = releases.some(
      (release) =>
        release.kind === 'release' && release.token === grant.token && release.endedMs < grant.invokedMs,
    )
    const isSameHold = grant.token === highest.token && grant.owner === highest.owner && !wasReleased
    if (isSameHold) continue
    found.push(`tokens of ${resource} do not rise: ${sayGrant(highest)}, then ${sayGrant(grant)}`)
  }
  return found
}

/** One token, one owner, one resource: also of grants at the same time. */
function sharedTokens(grants: readonly Grant[]): readonly string[] {
  return [...groupBy(grants, ({ token }) => token)].flatMap(([token, same]) => {
    const [first] = same
    const other = same.find((grant) => grant.owner !== first?.owner || grant.resource !== first.resource)
    return first === undefined || other === undefined
      ? []
      : [`token ${token} was given twice: ${sayGrant(first)}, and ${sayGrant(other)}`]
  })
}

/** What a holder does under an older token after a newer grant was known must not pass: neither a write nor an extension. */
function latePasses(
  resource: string,
  grants: readonly Grant[],
  calls: readonly LockCall[],
): readonly string[] {
  return calls.flatMap((call) => {
    if (call.outcome !== 'ok' || (call.kind !== 'guard' && call.kind !== 'extend')) return []
    const passed = call.kind === 'guard' ? call.passed : call.extended
    if (passed !== true) return []
    const newer = grants.find(({ token, endedMs }) => token > call.token && endedMs < call.invokedMs)
    if (newer === undefined) return []
    const did = call.kind === 'guard' ? 'counted on' : 'extended'
    return [
      `${call.name} ${spanOf(call)} ${did} ${resource} under token ${call.token}, after ${sayGrant(newer)}`,
    ]
  })
}

function sayGrant(grant: Grant): string {
  return `${grant.name} ${spanOf(grant)} token ${grant.token} of ${grant.owner} on ${grant.resource}`
}
