import type { PgliteInstance, PgliteTransaction } from '../adapters/pglite-connection.ts'
import { currentDeclarer, currentScope, type Declarer, type Life, ProcessDiedError } from './scope.ts'
import type { SynchronousPglite } from './virtual-clock.ts'

/** The subset of PGlite that the kit itself needs. */
export interface RawPglite extends PgliteInstance, SynchronousPglite {
  exec(text: string): Promise<unknown>
}

type Query = PgliteInstance['query']

/**
 * Looks at a transaction of somebody who declares what it does: called when it begins; what it gives, before it commits. May throw,
 * and so roll it back.
 */
export type TransactionWatch = (tx: PgliteTransaction, declarer: Declarer) => Promise<() => Promise<void>>

/**
 * What a test's application has as its database: PGlite itself, but nothing of an attempt that was killed gets through, nor
 * anything after the end of the test. A killed attempt's open transaction is rolled back: on one connection it would hold up
 * everybody else for ever, where PostgreSQL notices the closed connection of a dead process.
 */
export class GuardedPglite implements PgliteInstance {
  readonly waitReady: Promise<void>
  readonly #raw: RawPglite
  #ended: Error | undefined
  /** Set before the first transaction that is to be watched. */
  watch: TransactionWatch | undefined

  constructor(raw: RawPglite) {
    this.#raw = raw
    this.waitReady = raw.waitReady
  }

  get isEnded(): boolean {
    return this.#ended !== undefined
  }

  /** From now on everything is refused by `error`. */
  end(error: Error): void {
    this.#ended ??= error
  }

  async query(...given: Parameters<Query>): ReturnType<Query> {
    this.#requireOpen()
    return await this.#raw.query(...given)
  }

  async exec(text: string): Promise<unknown> {
    this.#requireOpen()
    return await this.#raw.exec(text)
  }

  async transaction<T>(fn: (tx: PgliteTransaction) => Promise<T>): Promise<T> {
    this.#requireOpen()
    const life = currentScope()?.life
    const declarer = currentDeclarer()
    return await this.#raw.transaction(async (tx) => {
      const look = declarer && (await this.watch?.(tx, declarer))
      const value =
        life === undefined
          ? await fn(tx)
          : await Promise.race([fn(new MortalTransaction(tx, life)), life.died])
      await look?.()
      return value
    })
  }

  async listen(channel: string, callback: (payload: string) => void): Promise<() => Promise<void>> {
    this.#requireOpen()
    return await this.#raw.listen(channel, callback)
  }

  /** Does nothing: the instance is used again. */
  async close(): Promise<void> {}

  #requireOpen(): void {
    if (this.#ended !== undefined) throw this.#ended
    if (currentScope()?.life.isDead) throw new ProcessDiedError()
  }
}

/** A transaction of an attempt that may be killed: what a dead one asks is never answered. */
class MortalTransaction implements PgliteTransaction {
  readonly #tx: PgliteTransaction
  readonly #life: Life

  constructor(tx: PgliteTransaction, life: Life) {
    this.#tx = tx
    this.#life = life
  }

  get closed(): boolean {
    return this.#tx.closed
  }

  async query(...given: Parameters<PgliteTransaction['query']>): ReturnType<PgliteTransaction['query']> {
    return await this.#life.live(async () => await this.#tx.query(...given))
  }
}
