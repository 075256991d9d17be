import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, LockLostError } from 'holdfast'
import { tell } from '../stage/tell.ts'
import { standForLeader, writeBlindly, writeDecision } from './lead.ts'

/** A process that leads if nobody else does. */

/** How long a decision takes: here a leader may be paused, between its look at the lock and its write. */
const THINKING_MS = 150

const [, , name = 'candidate'] = process.argv
const write = process.env.UNGUARDED === 'true' ? writeBlindly : writeDecision
const app = defineApp({ name, database: process.env.DATABASE_URL, jobs: [], maxConnections: 2 })
const end = new AbortController()
process.once('SIGTERM', () => end.abort())

tell('ready')
await standForLeader(
  app,
  async ({ fencingToken, signal }) => {
    tell('leads', { token: String(fencingToken) })
    while (!signal.aborted && !end.signal.aborted) {
      tell('thinks')
      await sleep(THINKING_MS)
      try {
        await write(app, name, fencingToken)
      } catch (error) {
        if (!(error instanceof LockLostError)) throw error
        tell('refused', { token: String(fencingToken) })
        return
      }
    }
  },
  end.signal,
)
await app.close()
process.exit(0)
