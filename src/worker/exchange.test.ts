import { expect, it } from 'vitest'
import { Wakeup } from '../base/wakeup.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { type ExchangeOptions, FailedAfterSettlingError, runExchange, type Traded } from './exchange.ts'
import type { Wants } from './exchange-rules.ts'
import { Lease } from './lease.ts'
import { Outbox, type SettlementBatch } from './outbox.ts'
import { Pace } from './pace.ts'
import { Slots } from './slots.ts'

function job(id: string, workerId = 1n, lease = new Lease(1n, workerId, 1)): ClaimedJob {
  return { id, lease, queue: 'q' } as ClaimedJob
}

/** An exchange whose database is the test. */
const brought = (jobs: readonly ClaimedJob[], passedOver = false): Traded => ({ jobs, passedOver })

function setUp(concurrency = 2, overrides: Partial<ExchangeOptions> = {}) {
  const started: string[] = []
  const handedBack: string[] = []
  const errors: unknown[] = []
  const waitings: boolean[] = []
  const state = { stopping: false, life: 1n }
  const stop = new AbortController()
  const wakeup = new Wakeup()
  const outbox = new Outbox()
  const slots = new Slots('q', concurrency, ({ id }) => void started.push(id))
  const options: ExchangeOptions = {
    slots: [slots],
    outbox,
    pace: new Pace(['q'], 10_000),
    wakeup,
    trade: async () => brought([]),
    sawParked: () => false,
    claimParked: async () => [],
    settleOthers: async () => {},
    settleBeside: undefined,
    setWaiting: async (waiting) => void waitings.push(waiting),
    life: () => state.life,
    handBack: (jobs) => void handedBack.push(...jobs.map(({ id }) => id)),
    onError: (error) => errors.push(error),
    retryDelayMs: () => 1,
    isStopping: () => state.stopping,
    ...overrides,
  }
  return {
    options,
    started,
    handedBack,
    errors,
    waitings,
    state,
    stop,
    wakeup,
    outbox,
    slots,
    pace: options.pace,
  }
}

async function until(what: () => boolean): Promise<void> {
  const untilMs = performance.now() + 2000
  while (!what()) {
    if (performance.now() > untilMs) throw new Error('it did not come')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

function completed(id: string) {
  return {
    job: job(id),
    durationMs: 1,
    endedAtMs: performance.now(),
    outcome: { to: 'completed', result: null, late: false },
    error: undefined,
  } as const
}

it('says that it waits before it looks', async () => {
  const order: string[] = []
  const { options, stop } = setUp(2, {
    setWaiting: async () => void order.push('waiting'),
    trade: async () => {
      order.push('look')
      return brought([])
    },
  })
  const done = runExchange(options, stop.signal)
  await until(() => order.length >= 2)
  stop.abort()
  await done
  expect(order.slice(0, 2)).toEqual(['waiting', 'look'])
})

it('keeps the outcomes of a trade that failed, reports it, and tries again', async () => {
  const sent: string[][] = []
  let fails = true
  const send = (batch: SettlementBatch | undefined) => {
    if (batch === undefined) return
    sent.push(batch.settlements.map((s) => s.job.id))
    if (fails) {
      fails = false
      throw new Error('away')
    }
  }
  const { options, stop, outbox, errors } = setUp(2, {
    trade: async (settle) => {
      send(settle)
      return brought([])
    },
    settleOthers: async (batch) => send(batch),
  })
  outbox.add(completed('a'))
  const done = runExchange(options, stop.signal)
  await until(() => sent.length === 2)
  stop.abort()
  await done

  expect(sent).toEqual([['a'], ['a']])
  expect(errors).toHaveLength(1)
  expect(outbox.size).toBe(0)
})

it('does not send outcomes again that were recorded before the claim after them failed', async () => {
  const sent: string[] = []
  let trades = 0
  const send = (batch: SettlementBatch | undefined) =>
    sent.push(...(batch?.settlements.map((s) => s.job.id) ?? []))
  const { options, stop, outbox, errors } = setUp(2, {
    trade: async (settle) => {
      send(settle)
      trades += 1
      if (settle !== undefined) throw new FailedAfterSettlingError('away')
      return brought([])
    },
    settleOthers: async (batch) => void send(batch),
  })
  outbox.add(completed('a'))
  const done = runExchange(options, stop.signal)
  await until(() => errors.length === 1)
  const before = trades
  options.pace.wake()
  await until(() => trades > before)
  stop.abort()
  await done

  expect(sent).toEqual(['a'])
  expect(errors).toEqual(['away'])
})

it('hands back what a claim brings after a stop, and ends when nothing runs', async () => {
  let answer: ((jobs: readonly ClaimedJob[]) => void) | undefined
  const { options, stop, state, started, handedBack } = setUp(2, {
    trade: async (_, wants) =>
      wants === undefined
        ? brought([])
        : brought(
            await new Promise<readonly ClaimedJob[]>((resolve) => {
              answer = resolve
            }),
          ),
  })
  let ended = false
  const done = runExchange(options, stop.signal).then(() => {
    ended = true
  })
  await until(() => answer !== undefined)
  state.stopping = true
  expect(ended).toBe(false)
  answer?.([job('a'), job('b')])
  await done

  expect(handedBack).toEqual(['a', 'b'])
  expect(started).toEqual([])
})

it('hands back what a claim brings for a life that has ended meanwhile', async () => {
  let asked = false
  const { options, stop, state, started, handedBack } = setUp(2, {
    trade: async () => {
      if (asked) return brought([])
      asked = true
      state.life = 0n
      return brought([job('a', 1n)])
    },
  })
  const done = runExchange(options, stop.signal)
  await until(() => handedBack.length === 1)
  stop.abort()
  await done
  expect([handedBack, started]).toEqual([['a'], []])
})

it('claims nothing between two lives, and says again that it waits in the new one', async () => {
  const looks: bigint[] = []
  const { options, stop, state, waitings, wakeup, pace } = setUp(2, {
    trade: async () => {
      looks.push(state.life)
      return brought([])
    },
  })
  const done = runExchange(options, stop.signal)
  await until(() => looks.length > 0)
  state.life = 0n
  pace.wake()
  wakeup.wake()
  await new Promise((resolve) => setTimeout(resolve, 30))
  state.life = 2n
  pace.wake()
  wakeup.wake()
  await until(() => looks.includes(2n))
  stop.abort()
  await done

  expect(looks).not.toContain(0n)
  expect(waitings).toEqual([true, true])
})

it('looks again for jobs that were passed over as soon as a slot is free for them', async () => {
  const asked: unknown[] = []
  const { options, stop, slots, started, wakeup, pace } = setUp(1, {
    trade: async (_, wants) => {
      asked.push(wants?.free)
      if (asked.length === 1) return brought([job('a')])
      return asked.length === 2 ? brought([], true) : brought([job('careful')])
    },
  })
  // By itself it would look again in minutes only.
  pace.listens(true, 10_000)
  pace.said(true, performance.now() - 10_000)
  // Jobs are quick, and so claimed ahead of free slots; not so one that needs care.
  slots.add(job('warm'))
  slots.finished(0.01)
  const done = runExchange(options, stop.signal)
  await until(() => asked.length === 2)
  await new Promise((resolve) => setTimeout(resolve, 10))
  slots.finished(0.01)
  wakeup.wake()
  await until(() => started.includes('careful'))
  stop.abort()
  await done
  expect(asked.slice(0, 3)).toEqual([[1], [0], [1]])
})

it('says again that it waits after an error: the database may not know any more', async () => {
  let asks = 0
  const { options, stop, waitings } = setUp(2, {
    trade: async () => {
      asks += 1
      return asks === 1 ? await Promise.reject(new Error('away')) : brought([])
    },
  })
  const done = runExchange(options, stop.signal)
  await until(() => asks > 1)
  stop.abort()
  await done
  expect(waitings).toEqual([true, true])
})

it('starts what it claimed even if the look for parked jobs fails', async () => {
  let asked = false
  const { options, stop, started, errors } = setUp(2, {
    trade: async () => {
      if (asked) return brought([])
      asked = true
      return brought([job('a')])
    },
    sawParked: () => asked,
    claimParked: async () => await Promise.reject(new Error('away')),
  })
  const done = runExchange(options, stop.signal)
  await until(() => errors.length > 0)
  stop.abort()
  await done
  expect(started).toEqual(['a'])
})

it('looks for parked jobs when what it claimed has its slots', async () => {
  const free: number[] = []
  let asked = false
  const set = setUp(2, {
    trade: async () => {
      if (asked) return brought([])
      asked = true
      return brought([job('a')])
    },
    sawParked: () => asked,
    claimParked: async () => {
      free.push(set.slots.free)
      return []
    },
  })
  const done = runExchange(set.options, set.stop.signal)
  await until(() => free.length > 0)
  set.stop.abort()
  await done
  expect(free[0]).toBe(1)
})

it('looks again at once when it is woken during a claim', async () => {
  const asks: (Wants | undefined)[] = []
  const { options, stop, wakeup, pace } = setUp(2, {
    trade: async (_, wants) => {
      asks.push(wants)
      if (asks.length === 1) {
        pace.wake('q')
        wakeup.wake()
      }
      return brought([])
    },
  })
  // By itself it would look again in minutes only.
  pace.listens(true, 10_000)
  pace.said(true, performance.now() - 10_000)
  const done = runExchange(options, stop.signal)
  await until(() => asks.length === 2)
  stop.abort()
  await done
})

it('records every outcome before it ends by a stop', async () => {
  const sent: string[] = []
  const { options, stop, state, outbox, slots, wakeup } = setUp(2, {
    trade: async (settle) => {
      sent.push(...(settle?.settlements.map((s) => s.job.id) ?? []))
      return brought([])
    },
  })
  slots.add(job('a'))
  state.stopping = true
  const done = runExchange(options, stop.signal)
  await new Promise((resolve) => setTimeout(resolve, 20))
  outbox.add(completed('a'))
  slots.finished(1)
  wakeup.wake()
  await done
  expect(sent).toEqual(['a'])
})

it('sends the next statement before what arrived starts, and counts it as claimed already', async () => {
  const log: string[] = []
  const set = setUp(1, {
    trade: async (_, wants) => {
      log.push(`trade ${wants?.wanted.join() ?? '-'}`)
      return brought(log.length === 1 ? [job('a')] : [])
    },
  })
  const slots = new Slots('q', 2, ({ id }) => void log.push(`start ${id}`))
  const done = runExchange({ ...set.options, slots: [slots] }, set.stop.signal)
  await until(() => log.includes('start a'))
  set.stop.abort()
  await done
  expect(log.slice(0, 2)).toEqual(['trade 2', 'start a'])
  expect(slots.free).toBe(1)
})

it('starts what arrived first when jobs that need a free slot were passed over', async () => {
  const log: string[] = []
  const set = setUp(1, {
    trade: async (_, wants) => {
      log.push(`trade ${wants?.free.join() ?? '-'}`)
      return brought(log.length === 1 ? [job('a'), job('b')] : [], log.length === 1)
    },
  })
  const slots = new Slots('q', 3, ({ id }) => void log.push(`start ${id}`))
  const done = runExchange({ ...set.options, slots: [slots] }, set.stop.signal)
  await until(() => log.filter((line) => line.startsWith('trade')).length === 2)
  set.stop.abort()
  await done
  expect(log.slice(0, 4)).toEqual(['trade 3', 'start a', 'start b', 'trade 1'])
})

it('looks at once when it has said that it waits no more: nothing is announced from then on', async () => {
  const log: string[] = []
  const { options, stop, pace } = setUp(2, {
    setWaiting: async (waiting) => void log.push(waiting ? 'waits' : 'waits no more'),
    trade: async () => {
      log.push('look')
      return brought([])
    },
  })
  pace.listens(true, 10_000)
  const done = runExchange(options, stop.signal)
  await until(() => log.includes('look'))
  // What was announced came so fast that the worker is busy; its own next look would be at 60 s.
  pace.update(performance.now())
  pace.looked('q', { wanted: 1000, got: 999 }, performance.now() + 10_000)
  pace.update(performance.now() + 300)
  expect(pace.busy).toBe(true)
  options.wakeup.wake()
  await until(() => log.includes('waits no more'))
  await until(() => log.at(-1) === 'look')
  stop.abort()
  await done
})
