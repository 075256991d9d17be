import type { Logger } from '../base/logger.ts'
import type { Authorize } from '../jobs/authorize.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import type { Producer } from '../producers/define-producer.ts'
import type { Resource, ResourceFactory } from '../resources/resource.ts'

/** What stands in for a resource: another one, or only how it is built. */
export type ResourceReplacement = Resource | ResourceFactory<unknown>

/** Settings of one queue, the same for every worker of the application. */
export interface QueueOptions {
  /** Jobs of this queue that one worker runs at a time: 1 to 10,000. Default: 10. */
  readonly concurrency?: number | undefined
}

/** What {@link defineApp} takes. */
export interface AppOptions {
  /** Name of the application, for people: 1 to 255 bytes. */
  readonly name: string
  /**
   * Where the jobs live: an address (`postgres://…`, several hosts allowed; `pglite:./folder` or `pglite:memory:`
   * for the embedded database), a `pg` Pool, a postgres.js instance (Holdfast opens connections of its own to where it
   * connects), or a PGlite instance. A pool or instance of yours is never closed.
   */
  readonly database: unknown
  /** Every job that this application enqueues or runs, each made by `defineJob`. Names may come once. */
  readonly jobs: readonly AnyJob[]
  /** Every producer that `app.produce` runs, each made by `defineProducer`. Names may come once. Default: none. */
  readonly producers?: readonly Producer[] | undefined
  /**
   * Replaces resources by their names, for an environment or in tests: `{ mailer: fakeMailer }`, or how to build one,
   * `{ mailer: { create: () => … } }`. It has to fit what handlers do with it. Default: each as it is defined.
   */
  readonly resources?: Readonly<Record<string, ResourceReplacement>> | undefined
  /** The queues that workers of this application serve. Default: one named `default`. */
  readonly queues?: Readonly<Record<string, QueueOptions>>
  /** PostgreSQL schema of the tables: 1 to 63 bytes, taken literally. Default: `holdfast`. */
  readonly schema?: string | undefined
  /**
   * How long claimed jobs stay with a worker that is not heard of, in milliseconds: 1 s to 1 h. Renewed at a
   * third of it. Shorter finds dead workers sooner and bears shorter outages of the database. Default: 30,000.
   */
  readonly leaseMs?: number | undefined
  /**
   * Longest wait between two looks for jobs, in milliseconds: the delay of a job whose notification was lost. 10 ms
   * to 1 h; a second at most while nothing is listened to. Shorter costs an idle worker more statements. Default: 5,000.
   */
  readonly maxPollMs?: number | undefined
  /**
   * How long a stopping worker lets jobs end before it aborts their signals, in milliseconds: 0 to 24 h. Stay below
   * the time that your platform gives a process to end. Default: 15,000.
   */
  readonly shutdownMs?: number | undefined
  /** How long aborted jobs may still end before they are handed back, in milliseconds: 0 to 10 min. Default: 5,000. */
  readonly shutdownGraceMs?: number | undefined
  /**
   * How many days ended jobs are kept: completed ones (default 1), cancelled ones (default 7); fractions allowed,
   * 0 to 3,650. Dropped by whole ranges of ids, so some stay hours longer. Discarded jobs are kept until decided.
   *
   * `effectDays`: how long an effect that happened, or did not, is known: 0 to 36,525, default 365. Asked for later, it is
   * called again; one in doubt is kept until it is decided.
   *
   * `keyDays`: how long a value of a key stays in the history after the next one: 0 to 36,525, default 30; 0 is for ever.
   * `keyChanges`: how many changes of a key are kept behind the newest at most; default 0, which is any number. What live
   * holds read is kept, and everything for an hour. Ephemeral keys keep 16.
   */
  readonly retention?: {
    readonly completedDays?: number | undefined
    readonly cancelledDays?: number | undefined
    readonly effectDays?: number | undefined
    readonly keyDays?: number | undefined
    readonly keyChanges?: number | undefined
  }
  /**
   * True behind a transaction pooler such as pgbouncer: nothing is prepared or listened to, and jobs start at
   * polling latency. Default: false.
   */
  readonly pooler?: boolean | undefined
  /** Connections of the pool made for an address: 1 to 1,000. A worker takes four more, or five. Default: 10. */
  readonly maxConnections?: number | undefined
  /**
   * Decides before each attempt's handler whether whoever asked for the job may still act; a job's own `authorize` comes
   * in its place. Default: whoever could enqueue it may.
   */
  readonly authorize?: Authorize | undefined
  /** Where `ctx.log` writes. Default: nowhere. */
  readonly logger?: Logger | undefined
}

/** What {@link App.worker} takes. */
export interface WorkerOptions {
  /** Serve only these of the application's queues. Default: all. */
  readonly queues?: readonly string[] | undefined
  /** Concurrency by queue: 1 to 10,000. Default: the application's. */
  readonly concurrency?: Readonly<Record<string, number>>
  /** A label for people. Default: host name and process id. */
  readonly name?: string | undefined
  /**
   * True: when a handler blocks the event loop past its timeout and grace, the process is ended, after its leases
   * were given up. The command does that. Default: false; the leases are given up all the same.
   */
  readonly endProcessWhenStuck?: boolean | undefined
  /** Where `ctx.log` of this worker writes if the application has no logger. Default: nowhere. */
  readonly logger?: Logger | undefined
}
