import { describe, expect, it } from 'vitest'
import { judge } from './bars.ts'
import { Results } from './results.ts'

/** What each round found at one point, by contender. */
type Rounds = Readonly<Record<string, readonly Readonly<Record<string, number>>[]>>

function resultsOf(workload: string, point: string, rounds: Rounds): Results {
  const results = new Results()
  for (const [contender, samples] of Object.entries(rounds)) {
    for (const [n, figures] of samples.entries())
      results.add(workload, contender, n + 1, [{ point, figures }])
  }
  return results
}

function verdict(results: Results, workload: string, text: string): string {
  const bar = judge(results, new Set([workload])).find((one) => one.text === text)
  return bar === undefined ? 'no such bar' : `${bar.verdict} ${bar.measured}`
}

const rates = (...perSecond: readonly number[]) => perSecond.map((rate) => ({ 'jobs/s': rate }))

describe('a bar', () => {
  const bulk = (ours: readonly number[], peers: readonly number[]) =>
    resultsOf('W2', 'batches of 1,000', {
      holdfast: rates(...ours),
      ...(peers.length > 0 ? { 'graphile-worker': rates(...peers) } : {}),
    })

  it.each([
    ['at the bar', [150], [100], 'PASS 1.50, at least 1.5'],
    ['just below', [149], [100], 'FAIL 1.49, at least 1.5'],
    // 4, 1.4 and 1.5 of the same rounds; the medians of both, 160 and 100, would be 1.6.
    ['in the median of the rounds’ ratios', [160, 140, 300], [40, 100, 200], 'PASS 1.50, at least 1.5'],
    ['of a peer that was not in the run', [150], [], 'not measured at least 1.5'],
  ])('%s', (_, ours, peers, expected) => {
    expect(verdict(bulk(ours, peers), 'W2', '1.5 × graphile-worker')).toBe(expected)
  })

  it('of the least of several peers is measured against the best of them', () => {
    const point = 'concurrency 1'
    const results = resultsOf('W3', point, {
      holdfast: rates(100),
      'graphile-worker': rates(50),
      absurd: rates(125),
    })
    expect(verdict(results, 'W3', `${point}: ahead of every peer's best`)).toBe('FAIL 0.80, at least 1')
  })

  it('that must not be passed over is judged the other way round', () => {
    const wal = (bytes: number) =>
      verdict(
        resultsOf('W3', 'concurrency 50', { holdfast: [{ 'WAL B/job': bytes }] }),
        'W3',
        'WAL bytes per job',
      )
    expect(wal(400)).toBe('PASS 400.00, at most 400')
    expect(wal(401)).toBe('FAIL 401.00, at most 400')
  })

  it('of W8 takes what was held, not the control beside it', () => {
    const figures = (ratio: number, p99: number) => ({
      'end / before': ratio,
      'p99 ms before': 10,
      'p99 ms at the end': p99,
    })
    const results = resultsOf('W8', 'none held', { holdfast: [figures(0.1, 900)] })
    for (const [n, ratio] of [0.5, 0.9, 0.86].entries())
      results.add('W8', 'holdfast', n + 1, [{ point: 'snapshot held', figures: figures(ratio, 20) }])
    const bars = judge(results, new Set(['W8'])).map((bar) => `${bar.verdict} ${bar.measured}`)
    expect(bars).toEqual(['PASS 0.86, at least 0.85', 'PASS 2.00, at most 3'])
  })

  it('is asked for the workloads of the run only', () => {
    expect(judge(new Results(), new Set())).toEqual([])
    expect(judge(new Results(), new Set(['W9'])).map((bar) => bar.verdict)).toEqual(['not measured'])
  })
})
