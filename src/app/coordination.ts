import { hintChannelOf } from '../base/channel.ts'
import type { EventHub } from '../base/events.ts'
import type { Driver } from '../driver/driver.ts'
import { Hints } from '../driver/hints.ts'
import type { Database } from '../driver/operation.ts'
import { Reach } from '../driver/reach.ts'
import { Locks } from '../locks/locks.ts'
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
export class Coordination {
  /** For the areas, and for the command. */
  readonly reach: Reach
  readonly hints: Hints
  readonly locks: Locks

  constructor(options: CoordinationOptions) {
    const { driver, database, transactions, pooler } = options
    this.reach = new Reach({
      driver,
      database,
      databaseOf: (tx) => transactions.databaseOf(tx),
      requireOutside: () => transactions.requireOutside(),
    })
    this.hints = new Hints({ driver, channel: hintChannelOf(database.schema), listens: !pooler })
    this.locks = new Locks({ reach: this.reach, hints: this.hints })
  }

  async close(): Promise<void> {
    await this.locks.close()
    await this.hints.close()
  }
}
