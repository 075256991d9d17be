import { cancels, dueTimes, rescues } from './checks/answers.ts'
import { attempts, fences, finality } from './checks/attempts.ts'
import { atomicCommits, checkpoints } from './checks/commits.ts'
import { outsideEffects } from './checks/effects.ts'
import { noGhost, noLoss, uniqueness, unknownCommits } from './checks/enqueues.ts'
import { casesOf, enqueuesOf, type History } from './history.ts'
import { progress, recoveriesOf, restartsOf } from './recovery.ts'
import type { Verdict } from './verdict.ts'

export interface Verdicts {
  readonly verdicts: readonly Verdict[]
  /** From the kill to the next start or the end of each job that ran. */
  readonly killRecoveryMs: readonly number[]
  /** The same of jobs that had lost a worker just before: they wait, and run one at a time in a process. */
  readonly repeatedRecoveryMs: readonly number[]
  /** From the database's being up again to the next recorded outcome. */
  readonly restartRecoveryMs: readonly number[]
  readonly enqueues: Readonly<Record<string, number>>
  /** Effects that were in doubt once, and that the ledger knows the end of. */
  readonly doubtsResolved: number
  /** Calls of the provider that came after others had gone on with the effect: no fence reaches it. */
  readonly lateCalls: number
}

export function check(history: History): Verdicts {
  const cases = casesOf(history)
  const enqueues = enqueuesOf(history)
  const effects = outsideEffects(history, cases)
  const recoveries = recoveriesOf(history, cases)
  const restarts = restartsOf(history)
  return {
    verdicts: [
      noLoss(history, cases, enqueues),
      noGhost(history, cases, enqueues),
      unknownCommits(cases, enqueues),
      fences(history, cases),
      finality(history, cases),
      attempts(cases),
      atomicCommits(history, cases),
      effects.verdict,
      checkpoints(history, cases),
      uniqueness(history, cases, enqueues),
      progress(history, recoveries, restarts),
      cancels(history, cases),
      dueTimes(history, cases),
      rescues(history, cases),
    ],
    killRecoveryMs: recoveries.filter(({ crashes }) => crashes === 0).map(({ tookMs }) => tookMs),
    repeatedRecoveryMs: recoveries.filter(({ crashes }) => crashes > 0).map(({ tookMs }) => tookMs),
    restartRecoveryMs: restarts.map(({ tookMs }) => tookMs),
    enqueues: enqueues.counts,
    doubtsResolved: effects.doubtsResolved,
    lateCalls: effects.lateCalls,
  }
}
