import { defineApp } from '../../../src/index.ts'
import { listenToTest, tell } from '../../support/program.ts'

/** Acquires a lock that renews itself, looks at its signal, closes the application, and has nothing more to do. */
listenToTest()
const [url = ''] = process.argv.slice(2)
const app = defineApp({ name: 'holder', database: url, jobs: [] })
const lock = await app.locks.acquire('held', { leaseMs: 60_000, renew: true })
const closed = defineApp({ name: 'waiter', database: url, jobs: [] })
const waiting = closed.locks.acquire('held', { waitMs: 3_600_000, retryMs: 3_600_000 })
await closed.close()
const waiter = await waiting
await app.close()
tell('done', { held: lock.held, aborted: lock.signal.aborted, waiter: waiter.held })
