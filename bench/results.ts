import { median, percentile } from './measure/statistics.ts'
import type { Sample } from './workloads/workload.ts'

/** One figure of one contender at one point, over the rounds of a run. */
export interface Summary {
  readonly median: number
  readonly min: number
  readonly max: number
  /** Half the distance from least to most, in percent of the median. */
  readonly spreadPercent: number
  readonly rounds: number
}

export interface Row {
  readonly workload: string
  readonly contender: string
  readonly point: string
  readonly figures: Readonly<Record<string, Summary>>
}

interface Entry {
  readonly workload: string
  readonly contender: string
  readonly round: number
  readonly sample: Sample
}

/** All samples of a run. */
export class Results {
  readonly #entries: Entry[] = []
  readonly #faults: string[] = []

  /** What makes the run fail: a job lost, doubled or wrong, or a contender that broke down. */
  get faults(): readonly string[] {
    return this.#faults
  }

  fault(text: string): void {
    this.#faults.push(text)
  }

  add(workload: string, contender: string, round: number, samples: readonly Sample[]): void {
    for (const sample of samples) this.#entries.push({ workload, contender, round, sample })
  }

  rows(workload: string): readonly Row[] {
    const groups = new Map<string, Entry[]>()
    for (const entry of this.#entries) {
      if (entry.workload !== workload) continue
      const key = `${entry.sample.point}\0${entry.contender}`
      groups.set(key, [...(groups.get(key) ?? []), entry])
    }
    return [...groups.values()].flatMap((entries) => {
      const [first] = entries
      if (first === undefined) return []
      return [
        { workload, contender: first.contender, point: first.sample.point, figures: summarize(entries) },
      ]
    })
  }

  /** Median of a figure; `*` stands for the only point there is. NaN if it was not measured. */
  median(workload: string, contender: string, point: string, figure: string): number {
    const row = this.rows(workload).find(
      (one) => one.contender === contender && (point === '*' || one.point === point),
    )
    return row?.figures[figure]?.median ?? Number.NaN
  }

  /** Median over the rounds of this contender's figure by the baseline's of the same round. */
  ratio(row: Pick<Row, 'workload' | 'contender' | 'point'>, baseline: string, figure: string): number {
    const of = (contender: string, round: number) =>
      this.#entries.find(
        (entry) =>
          entry.workload === row.workload &&
          entry.contender === contender &&
          entry.round === round &&
          entry.sample.point === row.point,
      )?.sample.figures[figure] ?? Number.NaN
    const rounds = new Set(this.#entries.map(({ round }) => round))
    return median([...rounds].map((round) => of(row.contender, round) / of(baseline, round)))
  }
}

function summarize(entries: readonly Entry[]): Record<string, Summary> {
  const names = new Set(entries.flatMap(({ sample }) => Object.keys(sample.figures)))
  const pooled = entries.flatMap(({ sample }) => sample.delaysMs ?? [])
  return Object.fromEntries(
    [...names].map((name) => {
      const values = entries.map(({ sample }) => sample.figures[name] ?? Number.NaN)
      const summary = summaryOf(values)
      // A percentile of all delays, not of the rounds' percentiles; the spread stays that of the rounds.
      if (pooled.length === 0 || !/^p(50|99) ms$/.test(name)) return [name, summary]
      return [name, { ...summary, median: percentile(pooled, Number(name.slice(1, 3))) }]
    }),
  )
}

function summaryOf(values: readonly number[]): Summary {
  const middle = median(values)
  const min = Math.min(...values)
  const max = Math.max(...values)
  return { median: middle, min, max, spreadPercent: ((max - min) / 2 / middle) * 100, rounds: values.length }
}
