import type { Results } from './results.ts'

/** A bar of the benchmark page, marked (now) there: what the product must reach, and what it was measured at. */
export interface Bar {
  readonly workload: string
  readonly text: string
  readonly verdict: 'PASS' | 'FAIL' | 'not measured'
  readonly measured: string
}

interface Condition {
  readonly workload: string
  readonly text: string
  /** What `is` compares; NaN where a contender was not in the run. */
  readonly value: (of: Reader) => number
  readonly is: 'at least' | 'at most'
  readonly bar: number
}

/** The figures of one workload. */
interface Reader {
  /** Median over the rounds. */
  median(contender: string, point: string, figure: string): number
  /** Of ours by a peer's in the same round, the median over the rounds: as the tables say it. */
  ratio(peer: string, point: string, figure: string): number
}

const TX = '10 callers, own transaction'
const OURS = 'holdfast'
const GRAPHILE = 'graphile-worker'

const ratio =
  (point: string, peer: string, figure = 'jobs/s') =>
  (of: Reader) =>
    of.ratio(peer, point, figure)
const ours = (point: string, figure: string) => (of: Reader) => of.median(OURS, point, figure)
const totalCpu = (of: Reader, contender: string, point: string) =>
  of.median(contender, point, 'client CPU s/10k') + of.median(contender, point, 'server CPU s/10k')
const least = (values: readonly number[]) => Math.min(...values.filter((value) => !Number.isNaN(value)))

const conditions: readonly Condition[] = [
  atLeast('W1', 'own transaction each, 10 callers: 3 × graphile-worker', 3, ratio(TX, GRAPHILE)),
  atLeast('W1', 'own transaction each, 10 callers: ahead of Absurd', 1, ratio(TX, 'absurd')),
  atLeast('W1', 'own transaction each, 10 callers: 0.6 × raw', 0.6, ratio(TX, 'raw')),
  atLeast('W1', 'coalesced, 100 callers: 20 × graphile-worker', 20, ratio('100 callers', GRAPHILE)),
  atLeast('W1', 'coalesced, 100 callers: ahead of BullMQ, AOF always', 1, ratio('100 callers', 'bullmq')),
  atLeast('W2', '1.5 × graphile-worker', 1.5, ratio('batches of 1,000', GRAPHILE)),
  ...['W3', 'W4'].flatMap((workload) => [
    atLeast(workload, 'concurrency 50: 1.5 × graphile-worker', 1.5, ratio('concurrency 50', GRAPHILE)),
    atLeast(workload, 'concurrency 50: 2.3 × pg-boss', 2.3, ratio('concurrency 50', 'pg-boss')),
    // Set as 7 µs on a machine on which raw takes 3; on another one it is as many times what raw takes there.
    atMost(
      workload,
      'concurrency 50: node CPU 7/3 × raw',
      7 / 3,
      ratio('concurrency 50', 'raw', 'client CPU s/10k'),
    ),
  ]),
  ...['concurrency 1', 'concurrency 10'].map((point) =>
    atLeast('W3', `${point}: ahead of every peer's best`, 1, (of) => {
      const peers = [GRAPHILE, 'pg-boss', 'absurd', 'bullmq', 'bullmq-everysec']
      return least(peers.map((peer) => ratio(point, peer)(of)))
    }),
  ),
  atMost('W3', 'WAL bytes per job', 400, ours('concurrency 50', 'WAL B/job')),
  atMost('W5', "p50: 1.3 × graphile-worker's", 1.3, ratio('20/s', GRAPHILE, 'p50 ms')),
  atMost('W5', "p99: 2 × graphile-worker's", 2, ratio('20/s', GRAPHILE, 'p99 ms')),
  atMost('W6', "p99: 0.6 × graphile-worker's", 0.6, ratio('1,000/s', GRAPHILE, 'p99 ms')),
  atMost('W6', "CPU: 0.6 × the best PostgreSQL peer's", 0.6, (of) => {
    const peers = [GRAPHILE, 'graphile-worker-default', 'pg-boss', 'absurd']
    return totalCpu(of, OURS, '1,000/s') / least(peers.map((peer) => totalCpu(of, peer, '1,000/s')))
  }),
  ...['finished kept', 'scheduled for tomorrow', 'ready'].map((point) =>
    atLeast('W7', `${point}: 0.95 of empty`, 0.95, ours(point, 'of empty')),
  ),
  atLeast('W8', '0.85 of the rate before, at the end', 0.85, ours('snapshot held', 'end / before')),
  atMost('W8', 'p99 from acknowledgement to start (for the p99 claim): 3 × before', 3, (of) => {
    const p99 = (when: string) => ours('snapshot held', `p99 ms ${when}`)(of)
    return p99('at the end') / p99('before')
  }),
  // Its one point is named by its length.
  atMost('W9', 'statements/s per worker, listener alive', 0.5, ours('*', 'statements/s each')),
  atMost(
    'W7',
    'memory: worker MB over the backlog of finished jobs',
    150,
    ours('finished kept', 'peak MB over the backlog'),
  ),
]

export function judge(results: Results, workloads: ReadonlySet<string>): readonly Bar[] {
  return conditions
    .filter(({ workload }) => workloads.has(workload))
    .map(({ workload, text, value, is, bar }) => {
      const measured = value({
        median: (contender, point, figure) => results.median(workload, contender, point, figure),
        ratio: (peer, point, figure) => results.ratio({ workload, contender: OURS, point }, peer, figure),
      })
      const shown = `${measured.toFixed(2)}, ${is} ${Number(bar.toFixed(2))}`
      if (!Number.isFinite(measured))
        return { workload, text, verdict: 'not measured', measured: `${is} ${Number(bar.toFixed(2))}` }
      const holds = is === 'at least' ? measured >= bar : measured <= bar
      return { workload, text, verdict: holds ? 'PASS' : 'FAIL', measured: shown }
    })
}

function atLeast(workload: string, text: string, bar: number, value: Condition['value']): Condition {
  return { workload, text, bar, value, is: 'at least' }
}

function atMost(workload: string, text: string, bar: number, value: Condition['value']): Condition {
  return { workload, text, bar, value, is: 'at most' }
}
