import { startPostgres, volatileSettings } from '../../../scripts/postgres-server.ts'
import { listenToTest, tell } from '../program.ts'

/** Starts a server and then waits to be ended, one way or another. */
listenToTest()
setInterval(() => {}, 1_000)
const server = await startPostgres({ settings: volatileSettings })
tell('started', { pid: server.pid, dataDir: server.dataDir })
