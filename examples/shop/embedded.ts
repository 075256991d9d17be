import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { disconnect } from './database.ts'
import { readCounts, readFacts } from './facts.ts'
import { until } from './faults.ts'
import { parseOrders } from './orders.ts'
import { createRandom } from './random.ts'
import { createRecord, enter, type Message } from './record.ts'
import { portsOf, type Run, type RunOptions, withProgress } from './run.ts'
import { toEnvironment } from './settings.ts'
import { createShop, placeOrders, readConfirmedIds, readVersion } from './shop.ts'

const worker = 'embedded'
const describeWorkers = () => ['producer, worker and database: one process']

/** Runs the same shop in this one process, on the embedded database: without faults, which nobody would survive to tell. */
export async function runEmbedded(options: RunOptions): Promise<Run> {
  const { orders, file, mailServers, display, signal } = options
  const embeddedDatabaseFolder = path.join(path.dirname(file), 'database')
  delete process.env.DATABASE_URL
  Object.assign(
    process.env,
    toEnvironment({ ...portsOf(mailServers), embeddedDatabaseFolder, workerName: worker }),
  )

  // Loaded only now, since they read their settings from the environment.
  const { default: app, database } = await import('./app.ts')
  const { confirmOrders } = await import('./confirm-orders.ts')
  const { runWorker } = await import('./run-worker.ts')
  const name = `PGlite, PostgreSQL ${await readVersion(database)}`
  await app.migrate()
  await createShop(database)
  display.note(`${name} is up, in this process`)

  const record = createRecord()
  const tell = (message: Message) => enter(record, worker, message)
  const running = await runWorker(tell)
  const work = async () => {
    const typed = parseOrders(await readFile(file, 'utf8'))
    await placeOrders(database, typed)
    const pace = { ordersPerSecond: options.ordersPerSecond }
    await confirmOrders(typed, { ...options, pace, random: createRandom(options.seed), tell })
    await until(async () => (await readCounts(database)).live === 0, Number.POSITIVE_INFINITY, signal)
    await running.stop()
  }
  await withProgress(
    { run: options, record, workers: describeWorkers, readCounts: () => readCounts(database) },
    work,
  )

  const confirmedIds = await readConfirmedIds(database)
  const facts = await readFacts(database)
  await app.close()
  await disconnect(database)
  return {
    evidence: {
      orders,
      confirmedIds,
      mails: mailServers.accepted(),
      inquiries: mailServers.inquiries,
      facts,
      record,
    },
    database: name,
  }
}
