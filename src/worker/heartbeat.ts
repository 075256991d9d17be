import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Worker as Thread } from 'node:worker_threads'
import type { PgHostConfig } from '../adapters/pg-hosts.ts'
import { isSource, packageProgram } from '../base/package-files.ts'
import type { Driver } from '../driver/driver.ts'
import { type Database, run } from '../driver/operation.ts'
import { renewLeases } from '../jobs/sql/renew-leases.ts'
import { type HeartbeatMessage, type HeartbeatStart, shared, sharedNowMs } from './heartbeat-messages.ts'
import { type CancelledJob, runLeaseKeeper } from './lease-keeper.ts'

export interface HeartbeatOptions {
  readonly driver: Driver
  readonly database: Database
  readonly workerId: bigint
  readonly leaseMs: number
  readonly endProcessWhenStuck: boolean
  readonly loopWatch: LoopWatch
  /** Earliest moment by which a running attempt has to be over, by `monotonicMs`; infinite: none. */
  readonly hardDeadlineMs: () => number
  /** A renewal was answered: from now on leases are kept. */
  readonly onBeating: () => void
  readonly onCancelled: (jobs: readonly CancelledJob[]) => void
  readonly onLost: (why: string) => void
  readonly onError: (error: unknown, retryInMs: number) => void
  readonly onBlocked: (blockedMs: number) => void
}

/** What the event loop tells the heartbeat thread, in memory that both see. */
export class LoopWatch {
  readonly times = new Float64Array(new SharedArrayBuffer(shared.length * Float64Array.BYTES_PER_ELEMENT))

  /** The loop turns; `deadlineMs` is the earliest of all running attempts by `monotonicMs`, infinite: none. */
  turned(deadlineMs: number): void {
    this.times[shared.turnedAt] = sharedNowMs()
    this.times[shared.hardDeadline] = Number.isFinite(deadlineMs)
      ? sharedNowMs() + (deadlineMs - performance.now())
      : 0
  }

  /** A handler is about to be called that has to be over within `ms`. It may block the loop before its next turn. */
  starting(ms: number): void {
    const known = this.times[shared.hardDeadline] as number
    const deadlineMs = sharedNowMs() + ms
    if (known === 0 || deadlineMs < known) this.times[shared.hardDeadline] = deadlineMs
  }
}

const BLOCKED_AFTER_MS = 1000
const TURN_MS = 100

/**
 * Renews the leases of one life of a worker until `signal` aborts or they are lost: from a thread with a
 * connection of its own, or, where that cannot be (the embedded database, or a pool whose options cannot be
 * handed to a thread), from this event loop, which a busy handler then can delay.
 */
export async function runHeartbeat(options: HeartbeatOptions, signal: AbortSignal): Promise<void> {
  const hosts = options.driver.connectionConfig() as readonly PgHostConfig[] | undefined
  if (hosts === undefined) return await runHere(options, signal)
  const { loopWatch } = options
  const turn = () => loopWatch.turned(options.hardDeadlineMs())
  turn()
  const turning = setInterval(turn, TURN_MS)
  try {
    await runThread(options, hosts, loopWatch.times.buffer as SharedArrayBuffer, signal)
  } finally {
    clearInterval(turning)
  }
}

async function runHere(options: HeartbeatOptions, signal: AbortSignal): Promise<void> {
  const { driver, workerId } = options
  // Kept for itself: handlers may hold every connection of a pool for longer than a lease.
  const session = await driver.session()
  const database = { ...options.database, queryable: session }
  const renew = async () => {
    const [row] = await run(database, renewLeases, { workerId })
    if (row !== undefined) options.onBeating()
    return row === undefined
      ? ({ kind: 'gone' } as const)
      : ({ kind: 'renewed', cancelled: (row.cancelled ?? []) as readonly CancelledJob[] } as const)
  }
  await runLeaseKeeper({ ...options, renew }, signal)
  await session.release()
}

async function runThread(
  options: HeartbeatOptions,
  hosts: readonly PgHostConfig[],
  buffer: SharedArrayBuffer,
  signal: AbortSignal,
): Promise<void> {
  const start: HeartbeatStart = {
    hosts,
    pooler: !options.database.prepare,
    statement: renewLeases.statement(options.database.schema).text,
    workerId: String(options.workerId),
    leaseMs: options.leaseMs,
    blockedAfterMs: BLOCKED_AFTER_MS,
    shared: buffer,
    endProcessWhenStuck: options.endProcessWhenStuck,
  }
  const thread = startThread(start)
  thread.on('message', (message: HeartbeatMessage) => receive(message, options))
  const ended = new Promise<void>((resolve) => {
    thread.once('error', (error) => {
      options.onError(error, 0)
      // Better renewed from here than not at all.
      void runHere(options, signal).then(resolve)
    })
    thread.once('exit', (code) => {
      if (code === 0) resolve()
    })
  })
  const stop = () => thread.postMessage('stop')
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop)
  await ended
  signal.removeEventListener('abort', stop)
}

function receive(message: HeartbeatMessage, options: HeartbeatOptions): void {
  switch (message.kind) {
    case 'beating':
      return options.onBeating()
    case 'cancelled':
      return options.onCancelled(message.jobs)
    case 'lost':
      return options.onLost(message.why)
    case 'error':
      return options.onError(new Error(message.message), message.retryInMs)
    case 'blocked':
      return options.onBlocked(message.blockedMs)
  }
}

/** From source, as in our own tests, Node 20 cannot read TypeScript: the thread loads a loader first. */
function startThread(start: HeartbeatStart): Thread {
  const entry = packageProgram('worker/heartbeat-thread')
  if (!isSource) return new Thread(entry, { workerData: start })
  const resolved = createRequire(import.meta.url).resolve('tsx/esm/api')
  const loader = pathToFileURL(resolved.replace(/\.cjs$/, '.mjs')).href
  const code = `import(${JSON.stringify(loader)}).then(({ register }) => { register(); return import(${JSON.stringify(entry.href)}) })`
  return new Thread(code, { eval: true, workerData: start })
}
