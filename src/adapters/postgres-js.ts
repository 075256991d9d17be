import { startTimer } from '../base/sleep.ts'
import type { Queryable, RawRow, WireValue } from '../driver/driver.ts'
import { mapError } from '../driver/postgres-error.ts'
import { ENDED, hasMethods, isThing, refuse } from './shape.ts'
import { type MarkedStatement, markStatement, readMarkedError } from './transaction-mark.ts'

/** The subset of a transaction of postgres.js that is used; a reserved connection has it too. */
interface PostgresJsTransaction {
  unsafe(text: string, values: WireValue[]): { raw(): PostgresJsQuery }
}

interface PostgresJsQuery extends Promise<RawResult> {
  /** The connection it went to; `null` as long as it is only queued. */
  readonly state?: unknown
  strings?: readonly string[]
  /** Queues it, which awaiting it would do. */
  execute(): this
}

interface RawResult extends Iterable<readonly (Uint8Array | null)[]> {
  readonly columns: readonly { readonly name: string }[]
}

/** The subset of an instance, what `postgres(…)` gives, that is used. Its statements take any connection of its pool. */
export interface PostgresJsInstance {
  readonly options: object
}

export function isPostgresJsInstance(value: unknown): value is PostgresJsInstance {
  return typeof value === 'function' && isThing(value) && hasMethods(value, ['unsafe', 'begin', 'reserve'])
}

/**
 * A transaction of postgres.js: what `sql.begin` or `savepoint` gives, or a reserved connection on which the user
 * began one. None of them tells whether it is still open, so every statement is marked.
 */
export function recognisePostgresJs(tx: unknown): Queryable | undefined {
  if (typeof tx !== 'function' || !isThing(tx)) return undefined
  if (isPostgresJsInstance(tx)) {
    throw refuse('it is a postgres.js instance: pass the "sql" that sql.begin gives to its callback')
  }
  const isOne = hasMethods(tx, ['unsafe', 'savepoint']) || hasMethods(tx, ['unsafe', 'release'])
  return isOne ? usePostgresJs(tx as unknown as PostgresJsTransaction) : undefined
}

function usePostgresJs(tx: PostgresJsTransaction): Queryable {
  return {
    async query(text, values, { operation = 'statement', schema, deadlineMs } = {}) {
      try {
        return rowsOf(await sendOn(tx, markStatement(text, values), deadlineMs))
      } catch (error) {
        throw mapError(readMarkedError(error), { operation, sent: true, repeatable: true, schema })
      }
    },
  }
}

/**
 * Queues both statements at once, so that nothing comes between them. postgres.js drops what is queued in a
 * transaction after its end, if the connection is busy then, and its promise stays open for ever. So the first one
 * is waited for no longer than `deadlineMs`; and when it has answered, the second one is on its way, or dropped.
 */
async function sendOn(
  tx: PostgresJsTransaction,
  { marking, marked }: MarkedStatement,
  deadlineMs: number | undefined,
): Promise<RawResult> {
  const first = tx
    .unsafe(marking.text, [...marking.values])
    .raw()
    .execute()
  const values = [...marked.values]
  const second = tx.unsafe(marked.text, values).raw().execute()
  // Whichever fails first is told; the other one must not end the process.
  second.catch(() => {})
  try {
    await within(deadlineMs, first)
  } catch (error) {
    // Text and values are read when a statement is sent. Should that still happen to this one, it does nothing.
    second.strings = ['select 1']
    values.length = 0
    throw error
  }
  if (second.state === null) throw refuse(ENDED)
  return await second
}

async function within(deadlineMs: number | undefined, answer: Promise<unknown>): Promise<void> {
  let stop: (() => void) | undefined
  const deadline = new Promise<never>((_, reject) => {
    if (deadlineMs === undefined) return
    stop = startTimer(deadlineMs, () =>
      reject(refuse(`it does not answer, like one that has ended (waited ${deadlineMs} ms)`)),
    )
  })
  try {
    await Promise.race([answer, deadline])
  } finally {
    stop?.()
  }
}

/** Raw rows are bytes as PostgreSQL wrote them: parsers and transforms of the instance have no part in it. */
function rowsOf(result: RawResult): readonly RawRow[] {
  const names = result.columns.map(({ name }) => plainName(name))
  return [...result].map((row) =>
    Object.fromEntries(
      names.map((name, index) => {
        const bytes = row[index] ?? null
        return [name, bytes === null ? null : Buffer.from(bytes).toString('utf8')]
      }),
    ),
  )
}

/** A column's name before the instance's transform, which may have made it `runAt`, `RunAt` or `run-at`. */
function plainName(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()
}
