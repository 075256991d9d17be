import type { Client, LoggedCall } from './call-log.ts'
import type { Verdict } from './checkers/verdict.ts'

/** Something that clients do at the same time, and what must hold of it. */
export interface Workload {
  readonly name: WorkloadName
  /** What clients count on. Called once, before any of them starts. */
  readonly prepare?: (client: Client) => Promise<void>
  /** A few calls of one client. An error is a fault of the workload. */
  readonly turn: (client: Client) => Promise<void>
  /** After all clients have ended: reads what is there in the end. */
  readonly finish?: (client: Client) => Promise<void>
  readonly check: (calls: readonly LoggedCall[]) => Verdict
  /** Turns of all clients together after which its checker has enough to look at. */
  readonly enoughTurns: number
  /** Statements whose answers a cutting proxy keeps back. */
  readonly statements: readonly string[]
}

export type WorkloadName = 'register' | 'append' | 'bank' | 'lock' | 'sequence'
