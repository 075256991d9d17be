import { type Random, seededRandom } from '../../chaos/random.ts'
import type { KeyCall, KeyState, KeyWrite } from '../checkers/key-model.ts'
import { type Interleaving, interleave } from './interleaving.ts'

/** What one of its answers does wrong. */
export type KeyFault = 'stale read' | 'lost write' | 'blind compare-and-set' | 'revision falls'

export interface KeyStoreOptions extends Interleaving {
  readonly seed: number
  readonly keys: number
  readonly fault?: KeyFault
}

/** Calls of a store that is right, but for one answer if a fault is asked for. */
export function playKeyStore({ seed, keys, fault, ...how }: KeyStoreOptions): readonly KeyCall[] {
  const random = seededRandom(seed, 'keys')
  const moments = interleave(random, how)
  const store = new Map<string, KeyState[]>()
  let left = fault === undefined ? 0 : 1
  const faultFrom = moments.length * (0.3 + 0.3 * random.next())

  return moments.map((moment, index): KeyCall => {
    const key = `key-${random.whole(1, keys)}`
    const past = store.get(key) ?? [{ value: null, revision: -1n }]
    store.set(key, past)
    const asked = { ...moment, key, ...randomCall(random, index, past) }
    if (moment.effectMs === undefined) return asked
    const isFaulty = left > 0 && index > faultFrom && moment.outcome === 'ok' && fits(fault, asked, past)
    if (isFaulty) left -= 1
    const answered = take(asked, past, isFaulty ? fault : undefined)
    return moment.outcome === 'ok' ? answered : asked
  })
}

type Asked = { readonly kind: 'read' } | Pick<KeyWrite, 'kind' | 'value' | 'conditions'>

function randomCall(random: Random, index: number, past: readonly KeyState[]): Asked {
  const roll = random.next()
  if (roll < 0.4) return { kind: 'read' }
  const value = `v${index}`
  // Often what is there, now or a little while ago: so that conditions hold, and do not.
  const known = past[Math.max(0, past.length - random.whole(1, 3))] as KeyState
  if (roll < 0.6) return { kind: 'write', value }
  if (roll < 0.68) return { kind: 'write', value: null }
  if (roll < 0.76) return { kind: 'write', value, conditions: { absent: true } }
  if (roll < 0.88) return { kind: 'write', value, conditions: { revision: known.revision } }
  return { kind: 'write', value, conditions: { value: known.value ?? 'none' } }
}

/** A fault is made where it changes an answer. */
function fits(fault: KeyFault | undefined, call: Asked, past: readonly KeyState[]): boolean {
  if (fault === 'stale read') return call.kind === 'read' && past.length > 4
  if (call.kind === 'read' || past.length < 4) return false
  const applies = holds(call, past.at(-1) as KeyState)
  return fault === 'blind compare-and-set' ? !applies && call.value !== null : applies
}

function take(call: KeyCall, past: KeyState[], fault: KeyFault | undefined): KeyCall {
  const now = past.at(-1) as KeyState
  if (call.kind === 'read') return { ...call, answer: (fault === undefined ? now : past.at(-4)) ?? now }
  const applied = holds(call, now) || fault === 'blind compare-and-set'
  if (!applied) return { ...call, answer: { applied, revision: now.revision } }
  const revision = fault === 'revision falls' ? now.revision - 1n : now.revision + 1n
  if (fault !== 'lost write') past.push({ value: call.value, revision })
  return { ...call, answer: { applied, revision } }
}

function holds(call: Asked, { value, revision }: KeyState): boolean {
  if (call.kind === 'read') return true
  const { conditions = {} } = call
  if (call.value === null && value === null) return false
  if (conditions.absent === true && value !== null) return false
  if (conditions.value !== undefined && conditions.value !== value) return false
  return conditions.revision === undefined || conditions.revision === revision
}
