import { randomUUID } from 'node:crypto'
import type { RawRow, WireValue } from '../driver/driver.ts'
import { findPostgresError } from '../driver/postgres-error.ts'
import { ENDED, refuse } from './shape.ts'

/** Sends one statement on what the user passed, whatever state it is in. Throws what its library throws. */
export type Send = (text: string, values: readonly WireValue[]) => Promise<readonly RawRow[]>

const MARK = "select pg_catalog.set_config('holdfast.transaction', $1::text, true) as mark"
/** No setting has this name, and setting it says so: an error that nothing else gives. */
const NOT_MARKED = 'holdfast_transaction_ended'

/** Quoted names, texts and comments, in which `$1::text` is no parameter; or that. */
const FIRST_PARAMETER = /"(?:[^"]|"")*"|'(?:[^']|'')*'|\/\*[\s\S]*?\*\/|\$1::text\b/g

/** A statement with the one that goes before it. */
export interface MarkedStatement {
  readonly marking: { readonly text: string; readonly values: readonly WireValue[] }
  readonly marked: { readonly text: string; readonly values: readonly WireValue[] }
}

/**
 * Makes a statement that runs in an open transaction, or fails: for what cannot tell by itself whether it is still
 * open, or may end while the statement waits in its queue (an enqueue that nobody awaits, say).
 *
 * A statement before it sets a setting until the end of the transaction; the statement itself asks for the
 * setting where it reads its first parameter. Outside a transaction the setting was gone at once, and in somebody
 * else's it was never made, so that in both cases PostgreSQL refuses the statement and nothing of it happens.
 */
export function markStatement(text: string, values: readonly WireValue[]): MarkedStatement {
  const mark = randomUUID()
  return {
    marking: { text: MARK, values: [mark] },
    marked: { text: requireMark(text, values.length + 1), values: [...values, mark] },
  }
}

/** The error to throw for one that a marked statement gave: `TransactionRequiredError` if it asked in vain. */
export function readMarkedError(error: unknown): unknown {
  const isRefused = findPostgresError(error)?.message.includes(NOT_MARKED)
  return isRefused ? refuse(ENDED, { cause: error }) : error
}

/**
 * Sends a statement marked. Costs one more round trip: the two are not sent at once, since pg warns of statements
 * that queue.
 *
 * @throws {TransactionRequiredError} It did not run in the transaction. Otherwise what `send` throws.
 */
export async function sendMarked(
  send: Send,
  text: string,
  values: readonly WireValue[],
): Promise<readonly RawRow[]> {
  const { marking, marked } = markStatement(text, values)
  await send(marking.text, marking.values)
  try {
    return await send(marked.text, marked.values)
  } catch (error) {
    throw readMarkedError(error)
  }
}

/**
 * Has `text` ask for the mark, which is the parameter at `position`, where it reads its first one. What fails
 * without it is `set_config`: it is volatile, and so never evaluated ahead of time.
 */
function requireMark(text: string, position: number): string {
  let found = false
  const marked = text.replaceAll(FIRST_PARAMETER, (part) => {
    if (found || part !== '$1::text') return part
    found = true
    return (
      `(case when pg_catalog.current_setting('holdfast.transaction', true) operator(pg_catalog.=) $${position}::text ` +
      `then $1::text else pg_catalog.set_config('${NOT_MARKED}', '', true) end)`
    )
  })
  if (!found)
    throw new Error('holdfast: a statement without a parameter cannot be marked; this is a fault of ours')
  return marked
}
