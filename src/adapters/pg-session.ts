import { ClosedError } from '../base/errors.ts'
import type { RawRow, Session, StatementOptions, WireValue } from '../driver/driver.ts'
import type { PgConnection } from './pg-connection.ts'

/** A connection that is opened when first needed, and again after it broke. */
export class PgSession implements Session {
  readonly #open: (operation: string) => Promise<PgConnection>
  readonly #allowed: (options: StatementOptions) => StatementOptions
  readonly #onReleased: () => void
  #connection: PgConnection | undefined
  /** Ends when every statement so far has. pg wants one at a time on a connection. */
  #idle: Promise<unknown> = Promise.resolve()
  #released = false

  constructor(
    open: (operation: string) => Promise<PgConnection>,
    allowed: (options: StatementOptions) => StatementOptions,
    onReleased: () => void,
  ) {
    this.#open = open
    this.#allowed = allowed
    this.#onReleased = onReleased
  }

  async query(
    text: string,
    values: readonly WireValue[],
    options: StatementOptions = {},
  ): Promise<readonly RawRow[]> {
    if (this.#released) throw new ClosedError({ what: 'session' })
    const answer = this.#idle.then(async () => {
      const connection = await this.#connect(options.operation ?? 'statement')
      return await connection.query(text, values, this.#allowed(options))
    })
    this.#idle = answer.catch(() => {})
    return await answer
  }

  async release(): Promise<void> {
    if (this.#released) return
    this.#released = true
    this.#onReleased()
    await this.#idle
    // Its settings are not for others.
    await this.#connection?.release({ keep: false })
  }

  async close(): Promise<void> {
    await this.release()
  }

  async #connect(operation: string): Promise<PgConnection> {
    if (this.#connection && !this.#connection.broken) return this.#connection
    await this.#connection?.release()
    this.#connection = undefined
    this.#connection = await this.#open(operation)
    return this.#connection
  }
}
