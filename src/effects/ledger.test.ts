import { describe, expect, it, vi } from 'vitest'
import { LeaseLostError, UnavailableError } from '../base/errors.ts'
import type { IfUncertain } from './effect-options.ts'
import type { Begun, CallEnd, EffectId, EffectStore, Taken } from './effect-store.ts'
import { EffectBusyError, EffectUncertainError, notHappened } from './errors.ts'
import { Ledger } from './ledger.ts'
import type { FoundEffect } from './sql/find-effect.ts'

/*
 * The algorithm over a store in memory that keeps the rules of the statements. It is run with every order of the steps of
 * two callers, with a crash at each step, and with each answer lost: before the statement was done, and after.
 */

const effect: EffectId = { tenant: '', name: 'x', key: 'k' }

type Row = {
  state: string
  call: string
  calls: number
  doubts: number
  owner: number | null
  result: unknown
}

/** One row, as PostgreSQL would have it, and which attempts still hold their lease. */
class World {
  row: Row | undefined
  asked = 0
  /** What the outside has done. */
  happened = 0
  readonly live = new Set<number>()
  readonly warned: string[] = []
}

/** Called before each statement of a caller: may wait for its turn, or say that the answer gets lost. */
type Turn = (
  step: string,
) => Promise<'done' | 'lost before' | 'lost after'> | 'done' | 'lost before' | 'lost after'

class FakeStore implements EffectStore {
  readonly #world: World
  readonly #owner: number
  readonly #turn: Turn
  /** The statement may or may not have seen in its snapshot that the effect has happened. */
  readonly #knows: boolean

  constructor(world: World, owner: number, turn: Turn) {
    this.#world = world
    this.#owner = owner
    this.#knows = owner % 2 === 0
    this.#turn = turn
    world.live.add(owner)
  }

  begin(_: EffectId, call: string, taken: Taken | null): Promise<Begun> {
    return this.#do('begin', (world) => {
      const { row } = world
      const isKnown = this.#knows && row?.state === 'happened'
      if (isKnown) return { began: false, happened: true, result: row.result }
      return { began: this.#begin(world, call, taken), happened: false, result: null }
    })
  }

  #begin(world: World, call: string, taken: Taken | null): boolean {
    const { row } = world
    const next = { state: 'intended', call, owner: this.#owner, result: null }
    if (row === undefined) world.row = { ...next, calls: 1, doubts: 0 }
    else if (row.state === 'intended' && row.call === call) row.owner = this.#owner
    else if (row.state === 'open' || (row.state !== 'happened' && row.call === taken?.call)) {
      const doubts = taken?.isRefuted ? 0 : row.doubts + (row.state === 'open' ? 0 : 1)
      world.row = { ...next, calls: row.calls + 1, doubts }
    } else return false
    return true
  }

  find(): Promise<FoundEffect | undefined> {
    return this.#do('find', ({ row, live }) => {
      if (row === undefined) return undefined
      const held = row.state === 'intended' && row.owner !== null && live.has(row.owner)
      return {
        ...row,
        held,
        jobId: String(row.owner),
        token: BigInt(row.owner ?? 0),
        intendedAt: new Date(0),
      }
    })
  }

  record(_: EffectId, call: string, result: string): Promise<boolean> {
    return this.#do('record', ({ row }) => {
      if (row?.call !== call || row.state === 'happened') return false
      Object.assign(row, { state: 'happened', result: JSON.parse(result) as unknown })
      return true
    })
  }

  async end(_: EffectId, call: string, how: CallEnd): Promise<void> {
    await this.#do('end', ({ row }) => {
      if (row?.call === call && row.state === 'intended')
        row.state = how.notHappened && row.doubts === 0 ? 'open' : 'uncertain'
    })
  }

  ask(_: EffectId, call: string): Promise<boolean> {
    return this.#do('ask', (world) => {
      const { row } = world
      if (row?.call !== call || (row.state !== 'intended' && row.state !== 'uncertain')) return false
      world.asked += 1
      return true
    })
  }

  isOwn(found: FoundEffect): boolean {
    return found.jobId === String(this.#owner)
  }

  async #do<T>(step: string, act: (world: World) => T): Promise<T> {
    const fate = await this.#turn(step)
    if (fate === 'lost before') throw new UnavailableError({ operation: step })
    if (!this.#world.live.has(this.#owner)) throw new LeaseLostError({ jobId: 1n, fencingToken: 1n })
    const value = act(this.#world)
    if (fate === 'lost after') throw new UnavailableError({ operation: step })
    return value
  }
}

const now: Turn = () => 'done'

interface Caller {
  readonly owner: number
  readonly turn?: Turn
  readonly reached?: (step: string) => Promise<void> | undefined
  readonly ifUncertain?: IfUncertain<unknown>
  readonly fn?: () => unknown
  readonly waitMs?: number
  readonly signal?: AbortSignal
}

/** One attempt: performs the effect once, then its lease ends. */
async function attempt(world: World, caller: Caller): Promise<unknown> {
  const { owner, turn = now, reached = () => undefined, ifUncertain = 'ask', waitMs = 0 } = caller
  const { signal = new AbortController().signal } = caller
  const ledger = new Ledger({
    store: new FakeStore(world, owner, turn),
    signal: () => signal,
    isLost: () => !world.live.has(owner),
    onUncertain: (_, choice) => world.warned.push(choice),
    onAltered: () => {},
    reached,
  })
  const fn =
    caller.fn ??
    (() => {
      world.happened += 1
      return world.happened
    })
  try {
    return await ledger.perform({ effect, fn, ifUncertain, waitMs, notHappened: () => false })
  } finally {
    world.live.delete(owner)
  }
}

class Crash extends Error {}

const confirm = (world: World): IfUncertain<unknown> => {
  return () => (world.happened > 0 ? { happened: true, result: world.happened } : { happened: false })
}

/** What has to hold whatever was done to the callers. */
function check(world: World, results: readonly unknown[]): void {
  const repeats = world.warned.filter((choice) => choice === 'repeat').length
  expect(world.happened, 'calls that nobody was warned of').toBeLessThanOrEqual(1 + repeats)
  if (world.row?.state === 'happened') expect(world.happened).toBeGreaterThan(0)
  if (world.row?.state === 'open') expect(world.happened).toBe(0)
  const given = results.filter((result) => typeof result === 'number')
  expect(new Set(given).size, 'different results').toBeLessThanOrEqual(1)
}

describe('the ledger', () => {
  const steps = [
    'x before its intent',
    'x intended, before its call',
    'x called, before its record',
    'x confirmed, before its record',
    'x recorded',
  ]
  const choices = [
    ['ask', () => 'ask'],
    ['repeat', () => 'repeat'],
    ['confirm', confirm],
  ] as const satisfies readonly (readonly [string, (world: World) => IfUncertain<unknown>])[]

  it.each(choices)(
    'never calls twice unwarned with a crash at any step of any of three attempts (%s)',
    async (_, choose) => {
      const plans = [-1, 0, 1, 2, 3, 4]
      let doubts = 0
      for (const first of plans)
        for (const second of plans)
          for (const third of plans) {
            const world = new World()
            const results: unknown[] = []
            for (const [index, at] of [first, second, third, -1].entries()) {
              const reached = (step: string) => {
                if (step === steps[at]) throw new Crash()
                return undefined
              }
              const caller = { owner: index + 1, reached, ifUncertain: choose(world) }
              results.push(await attempt(world, caller).catch((error: unknown) => error))
            }
            check(world, results)
            doubts += world.warned.length
            // Nothing hides a doubt: the last attempt, which nobody disturbs, gives a result or says that it cannot.
            const last = results.at(-1)
            expect(typeof last === 'number' || last instanceof EffectUncertainError).toBe(true)
            if (choose !== choices[0][1]) expect(typeof last).toBe('number')
          }
      expect(doubts).toBeGreaterThan(20)
    },
  )

  it.each(choices)('calls once, and finds its result, whichever answers are lost (%s)', async (_, choose) => {
    vi.useFakeTimers()
    try {
      for (const fate of ['lost before', 'lost after'] as const)
        for (let lost = 0; lost < 64; lost += 1) {
          const world = new World()
          let statement = -1
          const turn: Turn = () => {
            statement += 1
            return (lost >> statement) & 1 ? fate : 'done'
          }
          const performing = attempt(world, { owner: 1, turn, ifUncertain: choose(world) })
          performing.catch(() => undefined)
          await vi.advanceTimersByTimeAsync(60_000)
          expect(await performing).toBe(1)
          expect(world).toMatchObject({
            happened: 1,
            asked: 0,
            warned: [],
            row: { state: 'happened', calls: 1 },
          })
        }
    } finally {
      vi.useRealTimers()
    }
  })

  it.each(choices)('lets one of two callers call, in every order of their steps (%s)', async (_, choose) => {
    let orders = 0
    let busy = 0
    for (let order = 0; order < 1 << 9; order += 1) {
      const world = new World()
      const waiting = new Map<number, () => void>()
      const turnOf = (owner: number): Turn => {
        return async () => {
          await new Promise<void>((resolve) => waiting.set(owner, resolve))
          return 'done' as const
        }
      }
      let running = 2
      const callers = [1, 2].map(async (owner) => {
        const crashes = owner === 1 && order % 3 === 0
        const reached = (step: string) => {
          if (crashes && step === 'x called, before its record') throw new Crash()
          return undefined
        }
        const caller = { owner, turn: turnOf(owner), reached, ifUncertain: choose(world) }
        const result = await attempt(world, caller).catch((error: unknown) => error)
        running -= 1
        return result
      })
      for (let turn = 0; running > 0; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve))
        const next = (order >> (turn % 9)) & 1 ? 2 : 1
        const owner = waiting.has(next) ? next : 3 - next
        const go = waiting.get(owner)
        waiting.delete(owner)
        go?.()
      }
      const results = await Promise.all(callers)
      check(world, results)
      orders += 1
      busy += results.filter((result) => result instanceof EffectBusyError).length
    }
    expect(orders).toBe(512)
    expect(busy).toBeGreaterThan(0)
  })

  it('asks for its intent again after it stood still, and calls nothing that it has lost meanwhile', async () => {
    const world = new World()
    let fn = 0
    const reached = async (step: string) => {
      if (step !== 'x intended, before its call') return
      // A process that is stopped here: its lease ends, and another takes over.
      world.live.delete(1)
      await attempt(world, { owner: 2, ifUncertain: 'repeat' })
      await new Promise((resolve) => setTimeout(resolve, 1100))
    }
    const stopped = attempt(world, { owner: 1, reached, fn: () => (fn += 1) })

    await expect(stopped).rejects.toBeInstanceOf(LeaseLostError)
    expect(fn).toBe(0)
    expect(world.happened).toBe(1)
  })

  it('does not call once the signal has aborted, and leaves the effect open', async () => {
    const world = new World()
    const reason = new Error('stop')
    const called = attempt(world, { owner: 1, signal: AbortSignal.abort(reason) })

    await expect(called).rejects.toBe(reason)
    expect(world).toMatchObject({ happened: 0, row: { state: 'open', doubts: 0 } })
  })

  it('looks again where somebody decides while it asks', async () => {
    const world = new World()
    await attempt(world, {
      owner: 1,
      fn: () => {
        throw new Error('timeout')
      },
    }).catch(() => undefined)
    const turn: Turn = (step) => {
      if (step === 'ask' && world.row) Object.assign(world.row, { state: 'happened', result: 'decided' })
      return 'done'
    }

    expect(await attempt(world, { owner: 2, turn })).toBe('decided')
    expect(world).toMatchObject({ happened: 0, asked: 0 })
  })

  it('keeps a doubt that a later call cannot know of, and drops one that the provider has refuted', async () => {
    for (const [ifUncertain, state] of [
      ['repeat', 'uncertain'],
      [() => ({ happened: false }), 'open'],
    ] as const) {
      const world = new World()
      const fail = (error: Error) => () => {
        throw error
      }
      await attempt(world, { owner: 1, fn: fail(new Error('timeout')) }).catch(() => undefined)
      const second = { owner: 2, ifUncertain, fn: fail(notHappened(new Error('refused'))) } as Caller
      await attempt(world, second).catch(() => undefined)
      expect(world.row?.state).toBe(state)
    }
  })

  it('refuses an answer of the function that asks the provider which is none', async () => {
    const world = new World()
    await attempt(world, {
      owner: 1,
      fn: () => {
        throw new Error('timeout')
      },
    }).catch(() => undefined)
    for (const answer of [undefined, {}, { happened: 'yes' }, true])
      await expect(attempt(world, { owner: 2, ifUncertain: () => answer as never })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        field: 'ifUncertain',
      })
    expect(world.happened).toBe(0)
  })
})
