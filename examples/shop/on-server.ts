import { startPostgres } from '../../scripts/postgres-server.ts'
import { type Child, startChild } from './child.ts'
import { Crew } from './crew.ts'
import { disconnect, type Sql } from './database.ts'
import { isCompleted, readCounts, readFacts } from './facts.ts'
import { planFaults, runFaults, until } from './faults.ts'
import { createRandom } from './random.ts'
import { createRecord, enter, type Message, type RunRecord } from './record.ts'
import { portsOf, type Run, type RunOptions, withProgress } from './run.ts'
import { toEnvironment } from './settings.ts'
import { createShop, readConfirmedIds, readVersion } from './shop.ts'

const workerNames = ['oslo', 'lima'] as const

/** How fast customers come while a fault waits for the workers to be up again: on a slow machine none is to be missed. */
const OVERDUE_SHARE = 0.2

/** How long a worker that was asked to end may take, in milliseconds. */
const DISMISS_MS = 10_000

/** Runs the shop as it is deployed: a PostgreSQL server, a producer process, worker processes, and bad luck. */
export async function runOnServer(options: RunOptions): Promise<Run> {
  const { orders, mailServers, display } = options
  await using postgres = await startPostgres({ version: 18, settings: { fsync: 'on' } })
  Object.assign(process.env, toEnvironment({ ...portsOf(mailServers), databaseUrl: postgres.url() }))

  // Loaded only now, since it reads its settings from the environment.
  const { default: app, database } = await import('./app.ts')
  const server = `PostgreSQL ${await readVersion(database)}`
  await app.migrate()
  await createShop(database)
  display.note(`${server} is up, with fsync on`)

  const record = createRecord()
  const onMessage = (worker: string, message: Message) => {
    enter(record, worker, message)
    if (message.type === 'refused') display.note(`refused: ${worker} no longer has job ${message.jobId}`)
  }
  const onDeath = (worker: string, how: string) => void record.deaths.push(`${worker}, ${how}`)
  await using crew = new Crew({ names: workerNames, onMessage, onDeath })
  await crew.ready()
  display.note(`workers ${workerNames.join(' and ')} are up`)

  await withProgress(
    {
      run: options,
      record,
      readCounts: () => readCounts(database),
      workers: () => [...crew.states].map(([worker, state]) => `${worker} ${state}`),
    },
    () => work(options, { crew, record, database, onMessage }),
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
    database: server,
  }
}

interface Shop {
  readonly crew: Crew
  readonly record: RunRecord
  readonly database: Sql
  readonly onMessage: (worker: string, message: Message) => void
}

/** Lets orders come in and faults happen, until every job is done and every worker has gone home. */
async function work(options: RunOptions, { crew, record, database, onMessage }: Shop): Promise<void> {
  const { mailServers, display, ordersPerSecond, seed, signal } = options
  const allDone = async () => (await readCounts(database)).live === 0
  const dry = new AbortController()
  const producer = startProducer(options, onMessage)
  const producing = produce(producer, signal)
    .then(() => until(allDone, Number.POSITIVE_INFINITY, signal))
    .finally(() => dry.abort())
  const plan = planFaults(options.orders.length, { names: workerNames, random: createRandom(seed) })
  const faulting = runFaults(plan, {
    mailServers,
    crew,
    record,
    note: (text) => display.note(text),
    onOverdue: (isOverdue) =>
      producer.tell({ ordersPerSecond: isOverdue ? ordersPerSecond * OVERDUE_SHARE : ordersPerSecond }),
    isCompleted: async (orderId) => {
      // The producer's word may still be under way.
      const jobId = record.confirmed.get(orderId)
      return jobId !== undefined && (await isCompleted(database, jobId))
    },
    dry: dry.signal,
    signal,
  })
  await Promise.all([producing, faulting])
  // One that is still starting does not know yet what SIGTERM asks of it.
  await crew.ready()
  await crew.dismiss(DISMISS_MS)
}

/** Runs the producer process to its end, or ends it when `signal` aborts. */
async function produce(producer: Child, signal: AbortSignal): Promise<void> {
  const end = () => producer.signal('SIGKILL')
  signal.addEventListener('abort', end)
  const how = await producer.ended
  signal.removeEventListener('abort', end)
  if (how !== 'exit code 0' && !signal.aborted) throw new Error(`the producer failed: ${how}`)
}

function startProducer(options: RunOptions, onMessage: Shop['onMessage']): Child {
  return startChild({
    file: 'producer.ts',
    args: [
      `--file=${options.file}`,
      `--seed=${options.seed}`,
      `--orders-per-second=${options.ordersPerSecond}`,
      `--rollback-share=${options.rollbackShare}`,
    ],
    onMessage: (message) => onMessage('producer', message),
  })
}
