import { sleep } from '../base/sleep.ts'
import type { Listener, ListenerEvents } from '../driver/driver.ts'
import { quoteIdentifier } from '../driver/identifier.ts'
import type { PgConnection } from './pg-connection.ts'

export interface PgListenerOptions {
  readonly channel: string
  readonly events: ListenerEvents
  /** Opens a connection that is the listener's alone. */
  readonly open: () => Promise<PgConnection>
  /** How often a silent connection is asked whether it lives, in milliseconds. Default: 15,000. */
  readonly checkEveryMs?: number
  /** How long it has to answer, in milliseconds. Default: 5,000. */
  readonly checkDeadlineMs?: number
}

const CHECK_EVERY_MS = 15_000
const CHECK_DEADLINE_MS = 5000
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 10_000

/**
 * Listens on a channel over a connection of its own, in no transaction.
 *
 * down → up: connected, LISTEN was answered; `onUp` is told.
 * up → down: the socket failed, or a check got no answer within 5 s, which is how a frozen or half-open
 * connection is noticed; `onDown` is told.
 * down → down: connecting failed; `onDown` is told, and the next try follows after 250 ms to 10 s.
 * any → closed: `close`, from where nothing leads back.
 */
export function startPgListener(options: PgListenerOptions): Listener {
  const closing = new AbortController()
  const state = { up: false }
  const ended = runListener(options, state, closing.signal)
  return {
    get up() {
      return state.up
    },
    async close() {
      closing.abort()
      await ended
    },
  }
}

async function runListener(
  options: PgListenerOptions,
  state: { up: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { onUp, onDown } = options.events
  let failures = 0
  while (!signal.aborted) {
    let connection: PgConnection | undefined
    try {
      connection = await openUnless(signal, options.open)
      if (!connection) return
      await listenOn(connection, options)
      failures = 0
      state.up = true
      tell(onUp)
      await watch(connection, options, signal)
    } catch (error) {
      state.up = false
      if (!signal.aborted) tell(() => onDown(error))
    } finally {
      state.up = false
      await connection?.release({ keep: false })
    }
    await sleep(reconnectDelayMs(failures), signal)
    failures += 1
  }
}

/** Wait before the next try to connect: 250 ms, doubled with each failure up to 10 s, then up to half less. */
function reconnectDelayMs(failures: number): number {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures, 10))
  return longest * (0.5 + Math.random() / 2)
}

async function listenOn(connection: PgConnection, { channel, events }: PgListenerOptions): Promise<void> {
  connection.onNotification((payload) => tell(() => events.onNotify(payload)))
  await connection.query(`listen ${quoteIdentifier(channel)}`, [], {
    operation: 'listen',
    repeatable: true,
    deadlineMs: CHECK_DEADLINE_MS,
  })
}

/** Returns when `signal` aborts; throws when the connection breaks. */
async function watch(
  connection: PgConnection,
  options: PgListenerOptions,
  signal: AbortSignal,
): Promise<void> {
  const { checkEveryMs = CHECK_EVERY_MS, checkDeadlineMs = CHECK_DEADLINE_MS } = options
  const ended = new AbortController()
  const end = () => ended.abort()
  connection.onBroken(end)
  signal.addEventListener('abort', end)
  try {
    while (true) {
      await sleep(checkEveryMs, ended.signal)
      if (signal.aborted) return
      if (connection.broken) throw connection.failure
      await connection.query('select 1', [], {
        operation: 'listen',
        repeatable: true,
        deadlineMs: checkDeadlineMs,
      })
    }
  } finally {
    signal.removeEventListener('abort', end)
  }
}

/** Opens a connection, but does not wait for it once `signal` aborts: it is ended when it comes. */
async function openUnless(
  signal: AbortSignal,
  open: () => Promise<PgConnection>,
): Promise<PgConnection | undefined> {
  const opening = open()
  return await new Promise((resolve, reject) => {
    const giveUp = () => {
      resolve(undefined)
      void opening.then(
        (late) => late.release({ keep: false }),
        // Nobody waits for this connection any more.
        () => {},
      )
    }
    signal.addEventListener('abort', giveUp)
    void opening.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}

/** What a listener's callback throws is not the connection's fault, and from a socket's event it would end the process. */
function tell(callback: () => void): void {
  try {
    callback()
  } catch {
    // The contract of ListenerEvents: callbacks report their own errors.
  }
}
