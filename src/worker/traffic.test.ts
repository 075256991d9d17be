import { afterEach, expect, it, vi } from 'vitest'
import { OutcomeUnknownError, UnavailableError } from '../base/errors.ts'
import { EventHub } from '../base/events.ts'
import type { RawRow } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import { LowWater } from './low-water.ts'
import { Traffic } from './traffic.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** A database that answers what it is told to, and remembers the statements it got. */
function setUp(answers: Readonly<Record<string, () => RawRow>>) {
  const sent: string[] = []
  const database: Database = {
    schema: 'x',
    prepare: true,
    queryable: {
      async query(text) {
        const name = /holdfast:(\w+)/.exec(text)?.[1] ?? ''
        sent.push(name)
        const answer = answers[name]
        return answer === undefined ? [] : [answer()]
      },
    },
  }
  const lowWater = new LowWater()
  const traffic = new Traffic({
    database,
    queues: ['q'],
    events: new EventHub(),
    lowWater,
    workerId: () => 1n,
    mayTakeSuspect: () => true,
    onSettled: () => {},
    onFinished: () => {},
  })
  return { traffic, sent, database, lowWater }
}

const wants = { queues: ['q'], wanted: [100], free: [1] }
const few = { queues: ['q'], wanted: [2], free: [2] }
const nothing = { token: null, ids: null, horizon: '1', snapshot: '5:5:', elapsed_ms: '1' }

it('gives back what a lost answer to a claim has hidden before it claims again, and looks once more a minute later', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  let isLost = true
  const { traffic, sent } = setUp({
    claim_jobs: () => {
      if (isLost) throw new OutcomeUnknownError({ operation: 'claim_jobs' })
      return nothing
    },
    release_unknown_leases: () => ({ released: '0' }),
  })
  await expect(traffic.trade(undefined, wants)).rejects.toThrow(OutcomeUnknownError)
  isLost = false

  await traffic.trade(undefined, wants)
  await traffic.trade(undefined, wants)
  // The claim may have been under way on the server still, and have committed since.
  vi.advanceTimersByTime(60_001)
  await traffic.trade(undefined, wants)
  vi.advanceTimersByTime(600_000)
  await traffic.trade(undefined, wants)

  expect(sent).toEqual([
    'claim_jobs',
    'release_unknown_leases',
    'claim_jobs',
    'claim_jobs',
    'release_unknown_leases',
    'claim_jobs',
    'claim_jobs',
  ])
})

it('says that outcomes are recorded where only the claim after them failed', async () => {
  let isLost = true
  const { traffic } = setUp({
    claim_jobs: () => {
      if (isLost) throw new OutcomeUnknownError({ operation: 'claim_jobs' })
      return nothing
    },
    settle_completed: () => ({ refused: null, cancelled: null }),
    release_unknown_leases: () => {
      throw new UnavailableError({ operation: 'release_unknown_leases' })
    },
  })
  await expect(traffic.trade(undefined, wants)).rejects.toThrow(OutcomeUnknownError)
  isLost = false

  await expect(traffic.trade({ workerId: 1n, settlements: [] }, wants)).rejects.toMatchObject({
    name: 'FailedAfterSettlingError',
    cause: { code: 'UNAVAILABLE' },
  })
})

it('tells what a look has seen: to the end where fewer came than were asked for, else as far as was taken', async () => {
  const claimed = {
    token: '7',
    ids: '{1,2}',
    names: '["a","a"]',
    queues: null,
    attempts: null,
    inputs: '[1,2]',
  }
  const more = { max_attempts: '{20,20}', enqueued_ats: '{5,5}', extras: null, marks: '[[null,3,"47"]]' }
  const { traffic, lowWater } = setUp({
    claim_jobs: () => ({ ...claimed, ...more, horizon: '90', snapshot: '5:9:5,7', elapsed_ms: '1' }),
  })
  const seen = vi.spyOn(lowWater, 'saw')
  await traffic.trade(undefined, { queues: ['q'], wanted: [2], free: [1] })
  await traffic.trade(undefined, wants)

  const snapshot = { xmin: 5n, xmax: 9n, running: [5n, 7n] }
  expect(seen.mock.calls.map(([queue, what, by]) => [queue, what, by])).toEqual([
    ['q', { taken: [[3, 47n]], horizon: undefined }, snapshot],
    ['q', { taken: [[3, 47n]], horizon: 90n }, snapshot],
  ])
})

it('asks nothing at its end unless an answer was lost', async () => {
  const { traffic, sent } = setUp({ claim_jobs: () => nothing })
  await traffic.trade(undefined, wants)
  await traffic.leases.releaseIfUnsure()
  expect(sent).toEqual(['claim_jobs'])
})

it('has a lease ended by a statement of its own when it was settled in parts, and forgets it when that has worked', async () => {
  const claimed = {
    ...nothing,
    token: '7',
    ids: '{1,2,3}',
    names: '["a","a","a"]',
    queues: null,
    attempts: null,
    max_attempts: '{20,20,NULL}',
    enqueued_ats: '{5,NULL,5}',
    inputs: '[1,2,3]',
    extras: '{"2":[1,true,9,"t",null]}',
    marks: null,
  }
  const { traffic, sent, database } = setUp({
    claim_jobs: () => claimed,
    settle_completed: () => ({ refused: null, cancelled: null, closed: null }),
    close_leases: () => ({ left: null, busy: null }),
  })
  const { jobs } = await traffic.trade(undefined, wants)
  expect(
    jobs.map(({ attempt, maxAttempts, enqueuedAtMs, scheduledAtMs, care, keyed, tenant }) => [
      attempt,
      maxAttempts,
      enqueuedAtMs,
      scheduledAtMs,
      care,
      keyed,
      tenant,
    ]),
  ).toEqual([
    [1, 20, 5, 5, 0, false, ''],
    [1, 20, 0, 9, 1, true, 't'],
    [1, 0, 5, 5, 0, false, ''],
  ])
  const ended = jobs.map((job) => ({
    job,
    durationMs: 1,
    endedAtMs: 0,
    outcome: { to: 'completed', result: null, late: false } as const,
    error: undefined,
  }))
  await traffic.trade({ workerId: 1n, settlements: ended.slice(0, 2) }, undefined)
  expect([traffic.leases.hasFinished, traffic.leases.tokens]).toEqual([false, [7n]])
  await traffic.trade({ workerId: 1n, settlements: ended.slice(2) }, undefined)
  expect([traffic.leases.hasFinished, traffic.leases.tokens]).toEqual([true, [7n]])

  await traffic.leases.closeFinished(database)
  expect([traffic.leases.hasFinished, traffic.leases.tokens]).toEqual([false, []])
  expect(sent.at(-1)).toBe('close_leases')
})

it('asks for a few by the small statement, and by the large one when only suspects are left', async () => {
  const job = {
    token: '7',
    place: '1',
    job_id: '3',
    attempt: '2',
    care: '1',
    name: 'a',
    max_attempts: '20',
    tenant: '',
    keyed: 'f',
    enqueued_at: '5',
    run_at: null,
    context: null,
    input: '{"n":1}',
    suspects: null,
  }
  const answers = [job, { token: null, suspects: null }, { token: null, suspects: 't' }]
  const { traffic, sent } = setUp({
    claim_few_jobs: () => answers.shift() as RawRow,
    claim_jobs: () => nothing,
  })

  expect((await traffic.trade(undefined, few)).jobs).toMatchObject([
    { id: '3', place: 1, name: 'a', attempt: 2, care: 1, enqueuedAtMs: 5, scheduledAtMs: 5, input: { n: 1 } },
  ])
  expect(traffic.leases.tokens).toEqual([7n])
  await traffic.trade(undefined, few)
  await traffic.trade(undefined, few)
  await traffic.trade(undefined, { ...few, free: [1] })
  expect(sent).toEqual(['claim_few_jobs', 'claim_few_jobs', 'claim_few_jobs', 'claim_jobs', 'claim_jobs'])
})

it('believes that a lease has ended only if the answer says so, however much of it was settled at once', async () => {
  const job = { place: '1', job_id: '3', attempt: '1', care: '0', name: 'a', max_attempts: '20', tenant: '' }
  const more = { keyed: 'f', enqueued_at: '5', run_at: null, context: null, input: '1', suspects: null }
  const closed = ['{7}', null]
  let token = 6
  const { traffic } = setUp({
    claim_few_jobs: () => ({ ...job, ...more, token: String((token += 1)) }),
    settle_attempts: () => ({ refused: null, cancelled: null, closed: closed.shift() ?? null }),
  })
  for (const finished of [false, true]) {
    const { jobs } = await traffic.trade(undefined, few)
    const settlements = jobs.map((one) => ({
      job: one,
      durationMs: 1,
      endedAtMs: 0,
      outcome: { to: 'cancelled', reason: 'x' } as const,
      error: undefined,
    }))
    await traffic.settleOthers({ workerId: 1n, settlements })
    expect(traffic.leases.hasFinished).toBe(finished)
  }
})
