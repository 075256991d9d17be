import { type Random, seededRandom } from '../../chaos/random.ts'
import type { AppendStep, AppendTransaction } from '../checkers/append-history.ts'
import { type Interleaving, interleave, type Moment } from './interleaving.ts'

export type ListFault =
  | 'stale read'
  | 'lost append'
  | 'rolled back append stays'
  | 'torn append'
  | 'write skew'

export interface ListStoreOptions extends Interleaving {
  readonly seed: number
  readonly keys: number
  readonly fault?: ListFault
}

type Lists = Map<string, readonly string[]>

/** Transactions over a store that is right, but for one of them if a fault is asked for. */
export function playListStore({ seed, keys, fault, ...how }: ListStoreOptions): readonly AppendTransaction[] {
  const random = seededRandom(seed, 'lists')
  const moments = interleave(random, how)
  const lists: Lists = new Map()
  const past: Lists[] = []
  let left = fault === undefined ? 0 : 1
  const faultFrom = moments.length * 0.4

  return moments.map((moment, index): AppendTransaction => {
    const steps = randomSteps(random, index, keys)
    const isFaulty = left > 0 && index > faultFrom && fits(fault, moment, steps)
    if (isFaulty) left -= 1
    if (isFaulty && fault === 'rolled back append stays') run(steps, lists, lists)
    if (moment.effectMs === undefined) return { ...moment, steps }
    past.push(new Map(lists))
    const before = isFaulty && (fault === 'stale read' || fault === 'write skew')
    const seen = before ? (past.at(-25) ?? lists) : lists
    const written = isFaulty && fault === 'lost append' ? new Map(lists) : lists
    const kept = isFaulty && fault === 'torn append' ? steps.slice(0, 1) : steps
    const done = run(kept, seen, written)
    return { ...moment, steps: moment.outcome === 'ok' ? [...done, ...steps.slice(kept.length)] : steps }
  })
}

function randomSteps(random: Random, index: number, keys: number): readonly AppendStep[] {
  return Array.from({ length: random.whole(1, 4) }, (_, place): AppendStep => {
    const key = `list-${random.whole(1, keys)}`
    return random.chance(0.5) ? { kind: 'read', key } : { kind: 'append', key, element: `${index}.${place}` }
  })
}

function fits(fault: ListFault | undefined, { outcome }: Moment, steps: readonly AppendStep[]): boolean {
  const appends = steps.filter(({ kind }) => kind === 'append').length
  const reads = steps.length - appends
  if (fault === 'rolled back append stays') return outcome === 'failed' && appends > 0
  if (outcome !== 'ok') return false
  if (fault === 'stale read') return reads > 1 && appends === 0
  if (fault === 'write skew') return reads > 1 && appends > 0
  if (fault === 'torn append') return appends === 2 && reads === 0
  return appends > 0
}

/** Runs the steps: reads look at `seen` with what the transaction appended itself, appends go to `written`. */
function run(steps: readonly AppendStep[], seen: Lists, written: Lists): readonly AppendStep[] {
  const base = new Map(seen)
  return steps.map((step) => {
    const list = base.get(step.key) ?? []
    if (step.kind === 'read') return { ...step, list }
    base.set(step.key, [...list, step.element])
    written.set(step.key, [...(written.get(step.key) ?? []), step.element])
    return step
  })
}
