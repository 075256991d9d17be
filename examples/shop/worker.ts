import { once } from 'node:events'
import app, { database } from './app.ts'
import { disconnect } from './database.ts'
import { runWorker } from './run-worker.ts'
import { tellSupervisor } from './tell-supervisor.ts'

// A worker process: works until it is asked to end, or until its supervisor is gone.
const asked = Promise.race([once(process, 'SIGTERM'), once(process, 'disconnect')])
const worker = await runWorker(tellSupervisor)
tellSupervisor({ type: 'ready' })

await asked
await worker.stop()
await app.close()
await disconnect(database)
if (process.connected) process.disconnect()
