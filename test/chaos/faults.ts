import { cut, freeze, loseReply, restartDatabase, terminateSession } from './faults/links.ts'
import { killAfterCall, killProducer, killWorker, makeZombie, stopWorker } from './faults/workers.ts'
import type { Random } from './random.ts'
import type { Stage } from './stage.ts'

/** Mean pauses between two faults of a kind, in milliseconds. */
export const paceOfFaults = {
  kill: 5200,
  killAfterCall: 4200,
  zombie: 4500,
  stop: 11_000,
  terminate: 2500,
  restart: 32_000,
  loseReply: 1100,
  cut: 7000,
  freeze: 9000,
  killProducer: 25_000,
}

export type FaultName = keyof typeof paceOfFaults

export const faults: Readonly<Record<FaultName, (stage: Stage, random: Random) => Promise<void>>> = {
  kill: killWorker,
  killAfterCall,
  zombie: makeZombie,
  stop: stopWorker,
  terminate: terminateSession,
  restart: restartDatabase,
  loseReply,
  cut,
  freeze,
  killProducer,
}
