import { expect, it } from 'vitest'
import { type Renewal, runLeaseKeeper } from './lease-keeper.ts'

/** Keeps a lease of 300 ms with these answers, one after the other; the last one repeats. */
function keep(answers: readonly (() => Promise<Renewal>)[], leaseMs = 300) {
  const stop = new AbortController()
  const log: string[] = []
  const sentAtMs: number[] = []
  const done = runLeaseKeeper(
    {
      leaseMs,
      async renew() {
        const answer = answers[Math.min(sentAtMs.length, answers.length - 1)]
        sentAtMs.push(performance.now())
        return (await answer?.()) ?? { kind: 'gone' }
      },
      onCancelled: (jobs) => log.push(`cancelled ${jobs.map(([id, reason]) => `${id} ${reason}`).join()}`),
      onLost: (why) => log.push(`lost: ${why}`),
      onError: () => log.push('error'),
    },
    stop.signal,
  )
  return { stop, log, sentAtMs, done }
}

const renewed = async (): Promise<Renewal> => ({ kind: 'renewed', cancelled: [] })
const fails = async (): Promise<Renewal> => await Promise.reject(new Error('away'))
const silent = async (): Promise<Renewal> => await new Promise(() => {})

it('renews at once, then every third of the lease, until it is stopped', async () => {
  const { stop, sentAtMs, done, log } = keep([renewed])
  await new Promise((resolve) => setTimeout(resolve, 350))
  stop.abort()
  await done

  expect(sentAtMs.length).toBeGreaterThanOrEqual(3)
  expect((sentAtMs[1] ?? 0) - (sentAtMs[0] ?? 0)).toBeGreaterThanOrEqual(99)
  expect(log).toEqual([])
})

it('is lost at once when the worker is gone, and ends', async () => {
  const { done, log } = keep([async () => ({ kind: 'gone' })])
  await done
  expect(log).toEqual(['lost: the worker was declared dead after its lease ran out'])
})

it('tries again, faster, after an error, and is lost no later than a lease after the last answer', async () => {
  const fromMs = performance.now()
  const { done, log, sentAtMs } = keep([renewed, fails])
  await done

  expect(performance.now() - fromMs).toBeGreaterThanOrEqual(295)
  expect(performance.now() - fromMs).toBeLessThan(900)
  expect(sentAtMs.length).toBeGreaterThan(3)
  expect(log.at(-1)).toBe('lost: the database could not be reached for a whole lease')
  expect(log.filter((line) => line.startsWith('lost'))).toHaveLength(1)
})

it('goes on when an answer comes again before the lease is over', async () => {
  const { stop, done, log } = keep([renewed, fails, renewed])
  await new Promise((resolve) => setTimeout(resolve, 400))
  stop.abort()
  await done
  expect(log).toEqual(['error'])
})

it('stops believing when an answer does not come at all', async () => {
  const fromMs = performance.now()
  const { done, log } = keep([renewed, silent])
  await done

  expect(performance.now() - fromMs).toBeLessThan(900)
  expect(log).toEqual(['lost: the database could not be reached for a whole lease'])
})

it('tells of cancelled jobs, and only when there are some', async () => {
  const { stop, done, log } = keep([async () => ({ kind: 'renewed', cancelled: [['7', 'why']] }), renewed])
  await new Promise((resolve) => setTimeout(resolve, 150))
  stop.abort()
  await done
  expect(log).toEqual(['cancelled 7 why'])
})
