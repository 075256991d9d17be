import { type Random, seededRandom } from '../../chaos/random.ts'
import type { LockCall } from '../checkers/locks.ts'
import { interleave, type Moment } from './interleaving.ts'

export type LockFault = 'ignores a live lease' | 'token falls' | 'token is given again' | 'late guard passes'

interface Held {
  readonly owner: string
  readonly token: bigint
  endsMs: number
  /** From when its owner can prove it; never, if an answer about it was lost. */
  knownMs: number
}

const LEASE_MS = 80

/** Calls of a store of locks that is right, but for one answer if a fault is asked for. */
export function playLockStore({ seed, fault }: { readonly seed: number; readonly fault?: LockFault }) {
  const random = seededRandom(seed, 'locks')
  const moments = interleave(random, { clients: 6, calls: 900 })
  return new LockStore(random, fault).play(moments)
}

class LockStore {
  readonly #random: Random
  #fault: LockFault | undefined
  /** By resource: the lock, and by client what it was last told it holds. */
  readonly #locks = new Map<string, Held>()
  readonly #tokens = new Map<string, bigint>()
  /** By client and resource, the name it acquired the lock under. */
  readonly #owners = new Map<string, string>()
  #lastToken = 100n
  #calls = 0

  constructor(random: Random, fault: LockFault | undefined) {
    this.#random = random
    this.#fault = fault
  }

  play(moments: readonly Moment[]): readonly LockCall[] {
    return moments.map((moment) => {
      this.#calls += 1
      const resource = `lock-${this.#random.whole(1, 3)}`
      const token = this.#tokens.get(`${moment.client} ${resource}`)
      return token === undefined || this.#random.chance(0.2)
        ? this.#acquire(moment, resource)
        : this.#use(moment, resource, token)
    })
  }

  #acquire(moment: Moment, resource: string): LockCall {
    // Who lost the answer asks under another name: its old one may hold the lock.
    const place = `${moment.client} ${resource}`
    const owner = (this.#tokens.has(place) && this.#owners.get(place)) || moment.name
    this.#owners.set(place, owner)
    const asked = { ...moment, resource, kind: 'acquire', owner, leaseMs: LEASE_MS } as const
    const nowMs = moment.effectMs
    if (nowMs === undefined) return asked
    const held = this.#locks.get(resource)
    const isLive = held !== undefined && held.endsMs >= nowMs
    if (isLive && held.owner === owner) return this.#told(asked, held.token)
    const isProvable = isLive && held.knownMs < nowMs && held.endsMs > nowMs + LEASE_MS / 2
    const isBroken = isProvable && moment.outcome === 'ok' && this.#isTime('ignores a live lease')
    if (isLive && !isBroken) return asked
    const token = this.#grant(moment, held)
    const knownMs = moment.endedMs
    this.#locks.set(resource, { owner, token, endsMs: nowMs + LEASE_MS, knownMs })
    return this.#told(asked, token)
  }

  #grant({ outcome }: Moment, held: Held | undefined): bigint {
    if (held !== undefined && outcome === 'ok') {
      if (this.#isTime('token falls')) return held.token - 1n
      if (this.#isTime('token is given again')) return held.token
    }
    this.#lastToken += 10n
    return this.#lastToken
  }

  #told(asked: LockCall & Moment, token: bigint): LockCall {
    if (asked.outcome !== 'ok') return asked
    this.#tokens.set(`${asked.client} ${asked.resource}`, token)
    return { ...asked, token } as LockCall
  }

  #use(moment: Moment, resource: string, token: bigint): LockCall {
    const held = this.#locks.get(resource)
    const { effectMs = Number.POSITIVE_INFINITY, outcome } = moment
    const isOwn = held?.token === token
    const isLive = isOwn && held.endsMs >= effectMs
    const answered = outcome === 'ok'
    if (isOwn && !answered) held.knownMs = Number.POSITIVE_INFINITY
    const roll = this.#random.next()
    if (roll < 0.4) {
      if (isOwn && moment.effectMs !== undefined) held.endsMs = Math.min(held.endsMs, effectMs - 0.001)
      this.#tokens.delete(`${moment.client} ${resource}`)
      return { ...moment, resource, kind: 'release', token, released: answered ? isOwn : undefined }
    }
    if (roll < 0.6) {
      const leaseMs = this.#random.whole(20, 2 * LEASE_MS)
      if (isLive) held.endsMs = effectMs + leaseMs
      return { ...moment, resource, kind: 'extend', token, leaseMs, extended: answered ? isLive : undefined }
    }
    const isLate = held !== undefined && held.token > token && held.knownMs < moment.invokedMs
    const passed = isOwn || (answered && isLate && this.#isTime('late guard passes'))
    return { ...moment, resource, kind: 'guard', token, passed: answered ? passed : undefined }
  }

  /** True once, where the fault is asked for and there is a history to break. */
  #isTime(fault: LockFault): boolean {
    if (this.#fault !== fault || this.#calls < 300) return false
    this.#fault = undefined
    return true
  }
}
