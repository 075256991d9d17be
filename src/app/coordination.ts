import { hintChannelOf } from '../base/channel.ts'
import type { EventHub } from '../base/events.ts'
import type { Driver } from '../driver/driver.ts'
import { Hints } from '../driver/hints.ts'
import type { Database } from '../driver/operation.ts'
import { Reach } from '../driver/reach.ts'
import type { JobCoordination } from '../jobs/context.ts'
import { Keys } from '../keys/keys.ts'
import { Locks } from '../locks/locks.ts'
import type { ScriptParams } from '../scripts/params.ts'
import type { ScriptResult } from '../scripts/result.ts'
import { type ScriptOptions, Scripts } from '../scripts/scripts.ts'
import { Sequences } from '../sequences/sequences.ts'
import type { Transactions } from './transactions.ts'

export interface CoordinationOptions {
  readonly driver: Driver
  readonly database: Database
  readonly transactions: Transactions
  readonly events: EventHub
  /** True behind a transaction pooler. */
  readonly pooler: boolean
}

/** What an application coordinates by: locks, keys, scripts, sequences. */
export class Coordination implements JobCoordination {
  readonly #scripts: Scripts
  /** For the areas, and for the command. */
  readonly reach: Reach
  readonly hints: Hints
  readonly sequences: Sequences
  readonly locks: Locks
  readonly keys: Keys

  constructor(options: CoordinationOptions) {
    const { driver, database, transactions, pooler } = options
    this.reach = new Reach({
      driver,
      database,
      databaseOf: (tx) => transactions.databaseOf(tx),
      requireOutside: () => transactions.requireOutside(),
    })
    this.hints = new Hints({ driver, channel: hintChannelOf(database.schema), listens: !pooler })
    this.#scripts = new Scripts(this.reach)
    this.sequences = new Sequences(this.reach)
    this.locks = new Locks({ reach: this.reach, hints: this.hints })
    this.keys = new Keys({ reach: this.reach, hints: this.hints })
  }

  async script(text: string, params?: ScriptParams, options?: ScriptOptions): Promise<ScriptResult> {
    return await this.#scripts.run(text, params, options)
  }

  async close(): Promise<void> {
    await this.locks.close()
    this.keys.close()
    await this.hints.close()
  }
}
