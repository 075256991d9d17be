import { checkName, checkNumber } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { type Database, run } from '../driver/operation.ts'
import { checkLock, type Durability, type LockInfo } from './lock-options.ts'
import { type ListedLock, listEphemeralLocks, listLocks as listPersistentLocks } from './sql/list-locks.ts'

/** Options of `app.locks.list`. */
export interface ListLocksOptions {
  /** Whose locks: 1 to 255 bytes. Default: those of nobody in particular. */
  readonly tenant?: string | undefined
  /** Default: `persistent`. */
  readonly durability?: Durability | undefined
  /** Rows of a page: 1 to 1,000. Default: 50. */
  readonly limit?: number | undefined
  /** The cursor that the page before gave. Default: from the beginning. */
  readonly after?: string | undefined
}

/** A page of locks that are held. */
export interface LockPage {
  readonly locks: readonly LockInfo[]
  /** Give it as `after` for the next page; null: this is the last. */
  readonly next: string | null
}

/**
 * A page of the locks that are held, by tenant and resource; `tenant: undefined` is for all tenants.
 *
 * @throws {InvalidArgumentError} An option is out of range. Nothing was sent.
 */
export async function listLocks(at: () => Database, options: ListLocksOptions): Promise<LockPage> {
  const { durability } = checkLock('any', { durability: options.durability })
  const tenant =
    options.tenant === undefined || options.tenant === ''
      ? options.tenant
      : checkName('tenant', options.tenant)
  const limit = checkNumber('limit', options.limit, limits.pageRows)
  const after = options.after === undefined ? ['', ''] : readCursor(options.after)
  const [afterTenant = '', afterResource = ''] = after
  const operation = durability === 'ephemeral' ? listEphemeralLocks : listPersistentLocks
  // One more than is shown tells whether there is a next page.
  const params = { tenant: tenant ?? null, afterTenant, afterResource, limit: limit + 1 }
  const rows = await run(at(), operation, params)
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return {
    locks: shown.map((row) => ({ ...row, durability })),
    next: last === undefined ? null : cursorOf(last),
  }
}

function cursorOf({ tenant, resource }: ListedLock): string {
  return Buffer.from(JSON.stringify([tenant, resource])).toString('base64url')
}

function readCursor(text: unknown): readonly string[] {
  try {
    const parts = JSON.parse(Buffer.from(text as string, 'base64url').toString()) as unknown
    const isStorable = (part: unknown) => typeof part === 'string' && !part.includes('\0')
    if (Array.isArray(parts) && parts.length === 2 && parts.every(isStorable)) return parts as string[]
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError({ field: 'after', problem: 'must be the cursor that a page before gave' })
}
