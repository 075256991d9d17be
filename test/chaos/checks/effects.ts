import type { EffectRow } from '../audit.ts'
import type { Case, History } from '../history.ts'
import type { Entry } from '../history-log.ts'
import type { Verdict } from '../verdict.ts'
import { NOTICE_MS } from './answers.ts'

/** For two clocks that are read apart and adjusted apart. */
const CLOCKS_MS = 5

/** All that is known of one effect. */
interface Effect {
  readonly key: string
  /** Job that asks for it. */
  readonly job: string
  readonly rows: readonly EffectRow[]
  readonly calls: readonly Entry[]
}

export interface EffectFindings {
  readonly verdict: Verdict
  /** Effects that were in doubt once, and that the ledger knows the end of. */
  readonly doubtsResolved: number
  /** Calls of workers that stood still, or were cut off, between their intent and their call, while another decided. */
  readonly lateCalls: number
}

/**
 * I7, outside: the provider was called only under an intent, never after the effect was known to have happened, always
 * with one idempotency key; where it was asked for an effect in doubt, or a person was, it was not called again before the
 * answer; every attempt that had a result had the same.
 */
export function outsideEffects(history: History, cases: ReadonlyMap<string, Case>): EffectFindings {
  const effects = effectsOf(history, cases)
  const violations: string[] = []
  let lateCalls = 0
  for (const effect of effects) {
    violations.push(...ledgerFaults(effect))
    const late = effect.calls.filter((call) => isLate(call, effect, history))
    lateCalls += late.length
    violations.push(...callFaults(effect, late, history))
  }
  violations.push(...resultFaults(history))
  const doubtful = new Set(
    history.workers.flatMap(({ entry }) => (entry.kind === 'uncertain' ? [String(entry['key'])] : [])),
  )
  const isKnown = ({ rows }: Effect) => ['happened', 'open'].includes(rows.at(-1)?.state ?? '')
  return {
    verdict: {
      name: 'I7 effects',
      promise: 'one effect per key; no call without intent, none once it is known',
      checked: history.provider.filter(({ kind }) => kind === 'call').length + effects.length,
      violations,
    },
    doubtsResolved: effects.filter((effect) => doubtful.has(effect.key) && isKnown(effect)).length,
    lateCalls,
  }
}

function effectsOf(history: History, cases: ReadonlyMap<string, Case>): readonly Effect[] {
  const nameOf = new Map([...cases.values()].map(({ row }) => [row.key, row.name]))
  const rows = new Map<string, EffectRow[]>()
  const calls = new Map<string, Entry[]>()
  for (const row of history.effects) rows.set(row.key, [...(rows.get(row.key) ?? []), row])
  for (const entry of history.provider) {
    if (entry.kind !== 'call') continue
    const key = String(entry['key'])
    calls.set(key, [...(calls.get(key) ?? []), entry])
  }
  return [...new Set([...rows.keys(), ...calls.keys()])].flatMap((key) => {
    const job = nameOf.get(key) ?? 'unknown'
    // The effect of a commit is in its transaction.
    if (job === 'committer') return []
    return [{ key, job, rows: rows.get(key) ?? [], calls: calls.get(key) ?? [] }]
  })
}

/** The ledger's own order: known is known, and a doubt is passed over only by those who may. */
function ledgerFaults({ key, job, rows }: Effect): readonly string[] {
  const found: string[] = []
  for (const [index, row] of rows.entries()) {
    const before = rows[index - 1]
    if (before?.state === 'happened' && row.state !== 'happened')
      found.push(`${key} (${job}) had happened and became ${row.state}`)
    const isTakenOver = row.state === 'intended' && before !== undefined && before.call !== row.call
    if (isTakenOver && job === 'asker' && before.state !== 'open')
      found.push(`${key} (${job}) was ${before.state} and intended again, and nobody had decided`)
  }
  return found
}

function callFaults(effect: Effect, late: readonly Entry[], history: History): readonly string[] {
  const { key, job, rows, calls } = effect
  const found: string[] = []
  const keys = new Set(calls.map((call) => String(call['idempotencyKey'])))
  if (keys.size > 1) found.push(`${key} (${job}) was called with ${keys.size} idempotency keys`)
  for (const call of calls) {
    const intent = intentOf(call, rows)
    const atMs = call.t + history.clockOffsetMs
    if (intent === undefined || intent.atMs > atMs + CLOCKS_MS)
      found.push(`${key} (${job}) was called under token ${String(call['token'])} without an intent`)
  }
  for (const call of late) {
    if (!isExcused(call, effect, history))
      found.push(`${key} (${job}) was called under token ${String(call['token'])} after others had gone on`)
  }
  const inTime = calls.length - late.length
  if (job !== 'repeater' && inTime > 1)
    found.push(`${key} (${job}) was called ${inTime} times though the provider had it`)
  if (rows.some(({ state }) => state === 'happened') && calls.length === 0)
    found.push(`${key} (${job}) is recorded as happened, and the provider knows nothing`)
  return found
}

function intentOf(call: Entry, rows: readonly EffectRow[]): EffectRow | undefined {
  return rows.find(
    (row) => row.state === 'intended' && row.job === call['job'] && row.token === call['token'],
  )
}

/** When another had taken the effect over, or had found out about it, before the call was made. */
function overtakenAtMs(call: Entry, rows: readonly EffectRow[]): number | undefined {
  const intent = intentOf(call, rows)
  if (intent === undefined) return undefined
  return rows.find(
    ({ seq, call: by, state }) => seq > intent.seq && (by !== intent.call || state !== 'intended'),
  )?.atMs
}

function isLate(call: Entry, { rows }: Effect, { clockOffsetMs }: History): boolean {
  const atMs = overtakenAtMs(call, rows)
  return atMs !== undefined && atMs < call.t + clockOffsetMs - CLOCKS_MS
}

/** No fence reaches the provider: a worker that stood still or was cut off may call when it goes on. */
function isExcused(call: Entry, { rows }: Effect, history: History): boolean {
  const fromMs = (intentOf(call, rows)?.atMs ?? 0) - history.clockOffsetMs
  const spans = [
    ...history.disturbances.filter(({ slot }) => slot === call['slot']),
    ...history.outages.map(({ downMs, upMs }) => ({ fromMs: downMs, toMs: upMs })),
  ]
  return spans.some((span) => span.fromMs <= call.t && span.toMs + NOTICE_MS >= fromMs)
}

function resultFaults({ workers }: History): readonly string[] {
  const results = new Map<string, Set<string>>()
  for (const { entry } of workers) {
    if (entry.kind !== 'effect') continue
    const key = String(entry['key'])
    results.set(key, (results.get(key) ?? new Set()).add(String(entry['result'])))
  }
  return [...results]
    .filter(([, given]) => given.size > 1)
    .map(([key, given]) => `${key} gave its attempts ${given.size} results: ${[...given].join(', ')}`)
}
