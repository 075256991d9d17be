import { AsyncLocalStorage } from 'node:async_hooks'
import { CompositionError, UnavailableError } from '../base/errors.ts'
import { lockFolder } from './folder-lock.ts'
import type { PgliteInstance } from './pglite-connection.ts'

/** An embedded database that is ready. */
export interface OpenPglite {
  readonly instance: PgliteInstance
  /** True in what runs inside the callback of a transaction of this instance, while that is open. */
  readonly isInsideTransaction: () => boolean
  /** Closes an instance of ours and unlocks its folder; does nothing to one of the user's. */
  close(): Promise<void>
}

/**
 * Opens an embedded database: the instance given, the folder given, or one in memory.
 *
 * @throws {CompositionError} PGlite is not installed.
 * @throws {FolderLockedError} Another process has the folder open.
 * @throws {UnavailableError} PGlite could not start on the folder.
 */
export async function openPglite(options: {
  readonly folder?: string | undefined
  readonly instance?: PgliteInstance
}): Promise<OpenPglite> {
  if (options.instance) {
    await options.instance.waitReady
    return { ...watchTransactions(options.instance), close: async () => {} }
  }
  const PGlite = await importPglite()
  const lock = options.folder === undefined ? undefined : lockFolder(options.folder)
  try {
    const instance: PgliteInstance = new PGlite(options.folder)
    await instance.waitReady
    const close = async (): Promise<void> => {
      try {
        await instance.close()
      } finally {
        lock?.release()
      }
    }
    return { ...watchTransactions(instance), close }
  } catch (error) {
    lock?.release()
    throw new UnavailableError({ operation: 'open the embedded database' }, { cause: error })
  }
}

async function importPglite(): Promise<new (folder?: string) => PgliteInstance> {
  try {
    return (await import('@electric-sql/pglite')).PGlite
  } catch (error) {
    const fault =
      'the embedded database needs PGlite: run "npm i @electric-sql/pglite", or pass the address of a PostgreSQL server'
    throw new CompositionError({ faults: [fault] }, { cause: error })
  }
}

const watched = new WeakMap<PgliteInstance, AsyncLocalStorage<{ open: boolean }>>()

/**
 * Makes it known whether code runs inside a transaction of `instance`, whoever opened it: the user's
 * `db.transaction` too, in which a call of ours without `tx` would wait for ever. PGlite tells nobody, so its
 * `transaction` method is wrapped, once for each instance.
 */
export function watchTransactions(
  instance: PgliteInstance,
): Pick<OpenPglite, 'instance' | 'isInsideTransaction'> {
  const known = watched.get(instance)
  if (known) return { instance, isInsideTransaction: () => known.getStore()?.open ?? false }
  const inside = new AsyncLocalStorage<{ open: boolean }>()
  watched.set(instance, inside)
  const transaction = instance.transaction.bind(instance)
  instance.transaction = async (fn) =>
    await transaction(async (tx) => {
      const state = { open: true }
      try {
        return await inside.run(state, async () => await fn(tx))
      } finally {
        state.open = false
      }
    })
  return { instance, isInsideTransaction: () => inside.getStore()?.open ?? false }
}
