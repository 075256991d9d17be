import { setTimeout as delay } from 'node:timers/promises'
import type { App } from '../../src/index.ts'
import type { Note } from '../chaos/history-log.ts'
import { seededRandom } from '../chaos/random.ts'
import { Client } from './call-log.ts'
import type { Workload, WorkloadName } from './workload.ts'
import { workloadsOf } from './workloads.ts'

export interface ClientsOptions {
  readonly app: App
  /** Of the process, in this life of it. */
  readonly name: string
  readonly seed: number
  readonly startMs: number
  readonly workloads: readonly WorkloadName[]
  /** How many clients each workload has. */
  readonly clients: number
  /** Mean pause between two turns of a client, in milliseconds: a history need not be long to be dense. */
  readonly pauseMs: number
  readonly note: Note
}

/** Runs the clients of one process until `isOver` says so, asked before each turn, and their last calls have been answered. */
export async function runClients(
  options: ClientsOptions,
  isOver: (workload: Workload) => boolean,
): Promise<void> {
  const loops = workloadsOf(options.workloads).flatMap((workload) =>
    Array.from({ length: options.clients }, async (_, number) => {
      const client = clientOf(options, `${workload.name}-${number + 1}`)
      while (!isOver(workload)) {
        await workload.turn(client)
        await delay(client.random.next() * 2 * options.pauseMs)
      }
    }),
  )
  await Promise.all(loops)
}

export function clientOf(
  { app, name, seed, startMs, note }: Omit<ClientsOptions, 'workloads' | 'clients' | 'pauseMs'>,
  of: string,
): Client {
  const whole = `${name}/${of}`
  return new Client({ app, name: whole, random: seededRandom(seed, whole), startMs, note })
}
