import { ClosedError } from '../base/errors.ts'
import { sleep } from '../base/sleep.ts'
import { GuardedPglite, type RawPglite } from './guarded-pglite.ts'
import { startPrepared } from './prepared-copy.ts'
import { resetDatabase } from './sql/reset-database.ts'
import { VirtualClock } from './virtual-clock.ts'

/** How long a reset may take, in real milliseconds, before the instance is given up: a test left a transaction open. */
const RESET_MS = 2000
/** Instances kept for the next tests: each holds some 100 MB. */
const MAX_KEPT = 4

/** An embedded PostgreSQL with our schema in it, used by one test after the other. */
interface Prepared {
  readonly raw: RawPglite
  readonly clock: VirtualClock
}

/** Prepared instances that no test has, by schema. */
const free = new Map<string, Prepared[]>()

/** The database of one test: empty but for our schema. */
export interface TestDatabase {
  /** For `database` of an application. Refuses everything after the release. */
  readonly instance: GuardedPglite
  readonly raw: RawPglite
  readonly clock: VirtualClock
  /** Ends the test's use of it. Safe to repeat. */
  release(): void
}

/**
 * Gives a database of its own to a test. Starting PostgreSQL takes seconds, so that is done once in a process, or as often
 * as tests run side by side; each further test gets an instance that another one has left, put back to empty.
 *
 * @throws {CompositionError} PGlite is not installed. @throws {UnavailableError} It could not start.
 */
export async function takeDatabase(schema: string): Promise<TestDatabase> {
  const prepared = (await takeFree(schema)) ?? (await prepare(schema))
  const instance = new GuardedPglite(prepared.raw)
  return {
    ...prepared,
    instance,
    release() {
      if (instance.isEnded) return
      instance.end(new ClosedError({ what: 'test app' }))
      const kept = free.get(schema) ?? []
      if (kept.length < MAX_KEPT) free.set(schema, [...kept, prepared])
      else void prepared.raw.close()
    },
  }
}

async function takeFree(schema: string): Promise<Prepared | undefined> {
  for (;;) {
    const prepared = free.get(schema)?.pop()
    if (prepared === undefined) return undefined
    if (await reset(prepared, schema)) return prepared
  }
}

/** False if the instance is of no use any more: its last test left a transaction that never ends, or moved its ids on. */
async function reset({ raw, clock }: Prepared, schema: string): Promise<boolean> {
  clock.reset()
  const late = new AbortController()
  const done = (async () => {
    await raw.exec('discard all')
    await raw.exec(resetDatabase(schema))
    return true
  })()
  try {
    return await Promise.race([done, sleep(RESET_MS, late.signal).then(() => false)])
  } catch {
    void raw.close().catch(() => {})
    return false
  } finally {
    late.abort()
    done.catch(() => {})
  }
}

async function prepare(schema: string): Promise<Prepared> {
  const raw = await startPrepared(schema)
  const clock = new VirtualClock()
  clock.drive(raw)
  await requireDriven(raw, clock)
  // Takes the place of the timer that its start has left, which is not one of the clock's and would keep the process.
  await raw.exec('set statement_timeout = 1000; select 1; reset statement_timeout')
  return { raw, clock }
}

/** A release of PGlite that takes the time from elsewhere has to fail here, not in a test that waits for a retry. */
async function requireDriven(raw: RawPglite, clock: VirtualClock): Promise<void> {
  const HOUR_MS = 3_600_000
  await clock.advance(HOUR_MS)
  const { rows } = await raw.query(
    `select extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs"`,
    [],
  )
  const { nowMs } = rows[0] as { nowMs: number }
  clock.reset()
  if (Math.abs(nowMs - Date.now() - HOUR_MS) > HOUR_MS / 2)
    throw new Error(
      'holdfast: this release of PGlite does not take its time from Date.now; the clock of tests cannot move',
    )
}
