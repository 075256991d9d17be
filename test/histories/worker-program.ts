import { defineApp } from '../../src/index.ts'
import { openHistory } from '../chaos/history-log.ts'
import { listenToTest } from '../support/program.ts'
import { type ClientsOptions, runClients } from './clients.ts'

/** A process of a run: an application of its own, and clients of every workload. Ends in order at SIGTERM. */

const settings = JSON.parse(process.env['CHAOS'] ?? '{}') as Pick<
  ClientsOptions,
  'name' | 'seed' | 'startMs' | 'workloads' | 'clients' | 'pauseMs'
> & { readonly url: string; readonly history: string }
const note = openHistory(settings.history)
listenToTest()

const app = defineApp({ name: 'histories', database: settings.url, jobs: [], maxConnections: 6 })
const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())
note('ready')
// The name of a process and its life: the calls of two lives are told apart.
const name = `${settings.name}.${process.pid}`
await runClients({ ...settings, name, app, note }, () => stop.signal.aborted)
await app.close()
note('stopped')
process.exit(0)
