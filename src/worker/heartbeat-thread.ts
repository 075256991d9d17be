/**
 * Entry point of the heartbeat thread: renews the leases of one life of a worker over a connection of its own, so
 * that a busy event loop, a full pool or a slow handler cannot make a live worker look dead.
 *
 * It also watches the event loop. A loop that stands still is told when it turns again. One that stands still
 * past the hard deadline of a running attempt will not enforce that deadline itself: this thread then stops
 * renewing, so that the jobs go to others, and, where asked to, ends the process.
 */
import fs from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { PgConnection } from '../adapters/pg-connection.ts'
import { PgHosts } from '../adapters/pg-hosts.ts'
import { errorToJson } from '../base/error-text.ts'
import { sleep } from '../base/sleep.ts'
import { type HeartbeatMessage, type HeartbeatStart, shared, sharedNowMs } from './heartbeat-messages.ts'
import { type CancelledJob, type Renewal, runLeaseKeeper } from './lease-keeper.ts'

const WATCH_MS = 100
const STUCK_EXIT_MESSAGE =
  'holdfast: a handler has blocked the event loop past its timeout and grace; its jobs are given up and the process ends\n'

const start = workerData as HeartbeatStart
const times = new Float64Array(start.shared)
const stop = new AbortController()
const hosts = new PgHosts(start.hosts, { max: 1, pooler: start.pooler })
let connection: PgConnection | undefined
let isBeating = false

parentPort?.once('message', () => stop.abort())

await Promise.all([
  runLeaseKeeper(
    {
      leaseMs: start.leaseMs,
      renew,
      onCancelled: (jobs) => tell({ kind: 'cancelled', jobs }),
      onLost: (why) => {
        tell({ kind: 'lost', why })
        stop.abort()
      },
      onError: (error, retryInMs) => tell({ kind: 'error', message: errorToJson(error), retryInMs }),
    },
    stop.signal,
  ),
  watchLoop(stop.signal),
])
await connection?.release()
await hosts.close()
parentPort?.close()

async function renew(): Promise<Renewal> {
  if (connection === undefined || connection.broken) {
    void connection?.release()
    connection = await hosts.open('renew_leases')
  }
  const [row] = await connection.query(start.statement, [start.workerId], {
    operation: 'renew_leases',
    repeatable: true,
    deadlineMs: Math.min(10_000, start.leaseMs / 3),
  })
  if (row === undefined) return { kind: 'gone' }
  tellBeating()
  const { cancelled } = row
  return {
    kind: 'renewed',
    cancelled: cancelled === null ? [] : (JSON.parse(cancelled as string) as CancelledJob[]),
  }
}

async function watchLoop(signal: AbortSignal): Promise<void> {
  let blockedMs = 0
  while (!signal.aborted) {
    const sleptFromMs = sharedNowMs()
    await sleep(WATCH_MS, signal)
    const nowMs = sharedNowMs()
    // A whole process that stood still (stopped, suspended) says nothing about its event loop.
    if (nowMs - sleptFromMs > 5 * WATCH_MS) continue
    const stoodMs = nowMs - (times[shared.turnedAt] as number)
    const deadlineMs = times[shared.hardDeadline] as number
    if (stoodMs > start.blockedAfterMs) blockedMs = stoodMs
    else if (blockedMs > 0) {
      tell({ kind: 'blocked', blockedMs })
      blockedMs = 0
    }
    if (stoodMs > start.blockedAfterMs && deadlineMs > 0 && nowMs > deadlineMs) giveUp()
  }
}

function giveUp(): void {
  tell({ kind: 'lost', why: 'a handler blocked the event loop past its timeout and grace' })
  // Renewing from now on would keep jobs from others that this process cannot run.
  stop.abort()
  if (!start.endProcessWhenStuck) return
  // Not process.stderr: a thread's goes by way of the main thread, which is the one that stands still.
  fs.writeSync(2, STUCK_EXIT_MESSAGE)
  process.kill(process.pid, 'SIGKILL')
}

function tellBeating(): void {
  if (!isBeating) tell({ kind: 'beating' })
  isBeating = true
}

function tell(message: HeartbeatMessage): void {
  parentPort?.postMessage(message)
}
