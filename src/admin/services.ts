import type { Driver } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'

/** What the reads and commands of this room work on. */
export interface AdminServices {
  readonly driver: Driver
  readonly database: Database
}
