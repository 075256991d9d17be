import fs from 'node:fs'
import path from 'node:path'
import type { Verdicts } from './checker.ts'
import type { History } from './history.ts'
import { shortagesOf } from './minima.ts'
import type { ChaosOptions } from './options.ts'
import type { FaultCounts, Stage } from './stage.ts'

export interface ChaosReport extends Verdicts {
  readonly seed: number
  readonly minutes: number
  readonly counts: Readonly<FaultCounts>
  readonly lostReplies: ReadonlyMap<string, number>
  /** Faults that hit less often than they must for the run to prove something. */
  readonly shortages: readonly string[]
  readonly violations: readonly string[]
  readonly ok: boolean
  readonly jobs: number
  /** What the workers' `worker.error` events told, each once. */
  readonly workerErrors: readonly string[]
  readonly attempts: number
  readonly drainedInMs: number | undefined
  /** Folder of histories and logs; removed if all went well. */
  readonly artifacts: string
}

export function reportOf(
  { minutes, seed }: ChaosOptions,
  stage: Stage,
  verdicts: Verdicts,
  history: History,
  facts: { readonly artifacts: string; readonly drainedInMs: number | undefined },
): ChaosReport {
  const shortages = shortagesOf(stage.counts, minutes)
  const violations = verdicts.verdicts.flatMap(({ name, violations: found }) =>
    found.map((text) => `${name}: ${text}`),
  )
  return {
    ...verdicts,
    ...facts,
    seed,
    minutes,
    counts: stage.counts,
    lostReplies: stage.lostReplies,
    shortages,
    violations,
    ok: shortages.length === 0 && violations.length === 0,
    jobs: history.jobs.length,
    workerErrors: [
      ...new Set(
        history.workers.flatMap(({ entry }) => (entry.kind === 'error' ? [String(entry['error'])] : [])),
      ),
    ],
    attempts: history.workers.filter(({ entry }) => entry.kind === 'start').length,
  }
}

/** Leaves what a failed run saw in its folder. */
export function keep({ artifacts, shortages, violations }: ChaosReport, history: History): void {
  const { audit, effects } = history
  const lines = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).join('\n')
  fs.writeFileSync(path.join(artifacts, 'audit.jsonl'), lines(audit))
  fs.writeFileSync(path.join(artifacts, 'effects.jsonl'), lines(effects))
  fs.writeFileSync(path.join(artifacts, 'violations.txt'), [...shortages, ...violations].join('\n'))
}
