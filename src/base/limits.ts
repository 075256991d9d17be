/** The documented range of one number. The reference pages and all checks are made from it. */
export interface Limit {
  /** Taken when the option is left out; `undefined` means none. */
  readonly default: number | undefined
  readonly min: number
  readonly max: number
  readonly unit: string
  readonly integer: boolean
  readonly description: string
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const KIB = 1024
const MIB = 1024 * KIB

const ms = { unit: 'ms', integer: true } as const
const bytes = { unit: 'bytes', integer: true } as const
const count = { unit: 'count', integer: true } as const
const days = { unit: 'days', integer: false } as const

/** Every range and default that a user can meet. */
export const limits = {
  maxAttempts: {
    ...count,
    default: 20,
    min: 1,
    max: 1000,
    description: 'Attempts a job gets before it is discarded.',
  },
  priority: { ...count, default: 0, min: 0, max: 9, description: 'Lower starts first.' },
  leaseMs: {
    ...ms,
    default: 30 * SECOND,
    min: SECOND,
    max: HOUR,
    description: 'How long a claimed job stays with a worker that is not heard of.',
  },
  timeoutMs: {
    ...ms,
    default: undefined,
    min: 1,
    max: 24 * DAY,
    description: 'How long one attempt may run.',
  },
  abortGraceMs: {
    ...ms,
    default: 5 * SECOND,
    min: 0,
    max: 10 * MINUTE,
    description: 'How long a handler may go on after its signal was aborted.',
  },
  shutdownMs: {
    ...ms,
    default: 15 * SECOND,
    min: 0,
    max: 24 * HOUR,
    description: 'How long a stopping worker lets its jobs finish.',
  },
  shutdownGraceMs: {
    ...ms,
    default: 5 * SECOND,
    min: 0,
    max: 10 * MINUTE,
    description: 'How long aborted jobs may still end before a stopping worker hands them back.',
  },
  concurrency: {
    ...count,
    default: 10,
    min: 1,
    max: 10_000,
    description: 'Jobs of one queue that one worker runs at a time.',
  },
  effectWaitMs: {
    ...ms,
    default: 30 * SECOND,
    min: 0,
    max: 24 * HOUR,
    description: 'How long an effect waits for a call of the same effect that is under way elsewhere.',
  },
  effectHoldMs: {
    ...ms,
    default: MINUTE,
    min: SECOND,
    max: DAY,
    description: 'How long a call of an effect outside jobs counts as under way.',
  },
  effectRetentionDays: {
    ...days,
    default: 365,
    min: 0,
    max: 36_525,
    description: 'Days that an effect is known after it happened; one in doubt is kept until it is decided.',
  },
  delayMs: {
    ...ms,
    default: 0,
    min: 0,
    max: 36_525 * DAY,
    description: 'How long a job waits before it is due.',
  },
  maxPollMs: {
    ...ms,
    default: 5 * SECOND,
    min: 10,
    max: HOUR,
    description:
      'Longest wait between two looks for due jobs: the delay of a job whose notification was lost.',
  },
  backoffBaseMs: {
    ...ms,
    default: SECOND,
    min: 0,
    max: 30 * DAY,
    description: 'Wait after the first failed attempt, before jitter.',
  },
  backoffFactor: {
    unit: 'times',
    integer: false,
    default: 2,
    min: 1,
    max: 100,
    description: 'What each further failed attempt multiplies the wait by.',
  },
  backoffCapMs: {
    ...ms,
    default: HOUR,
    min: 0,
    max: 365 * DAY,
    description: 'Longest wait between two attempts.',
  },
  inputBytes: {
    ...bytes,
    default: MIB,
    min: 1,
    max: 64 * MIB,
    description: "Size of a job's input as JSON.",
  },
  resultBytes: {
    ...bytes,
    default: MIB,
    min: 1,
    max: 64 * MIB,
    description: "Size of a handler's result as JSON.",
  },
  checkpointBytes: {
    ...bytes,
    default: 256 * KIB,
    min: 1,
    max: 64 * MIB,
    description: 'Size of a checkpoint as JSON.',
  },
  effectResultBytes: {
    ...bytes,
    default: 256 * KIB,
    min: 1,
    max: 64 * MIB,
    description: "Size of an effect's result as JSON.",
  },
  contextBytes: {
    ...bytes,
    default: 4 * KIB,
    min: 1,
    max: 256 * KIB,
    description: 'Size of the context that travels with a job as JSON.',
  },
  errorBytes: {
    ...bytes,
    default: 16 * KIB,
    min: 1 * KIB,
    max: MIB,
    description: 'Size of one recorded error; the rest is cut off.',
  },
  errorHistory: {
    ...count,
    default: 20,
    min: 1,
    max: 1000,
    description: 'Errors kept with a job; the oldest go first.',
  },
  noteBytes: {
    ...bytes,
    default: 1 * KIB,
    min: 1,
    max: 16 * KIB,
    description: 'Size of a reason or progress note; the rest is cut off.',
  },
  nameBytes: {
    ...bytes,
    default: 255,
    min: 1,
    max: 255,
    description: 'Length of a job, queue, worker, tenant, effect or schedule name in UTF-8.',
  },
  uniqueKeyBytes: {
    ...bytes,
    default: 1024,
    min: 1,
    max: 1024,
    description: 'Length of a unique, idempotency or lock key, or of the name of a sequence, in UTF-8.',
  },
  keyValueBytes: {
    ...bytes,
    default: undefined,
    min: 0,
    max: 16 * MIB,
    description: 'Size of the value of a key.',
  },
  keyTtlMs: {
    ...ms,
    default: undefined,
    min: 1,
    max: 36_525 * DAY,
    description: 'How long a key lives that is set with an expiry.',
  },
  keyBatch: { ...count, default: undefined, min: 0, max: 4096, description: 'Keys in one batch.' },
  keyPageRows: { ...count, default: 100, min: 1, max: 4096, description: 'Keys on one page of a list.' },
  keyHoldMs: {
    ...ms,
    default: MINUTE,
    min: 1,
    max: 24 * DAY,
    description: 'How long a hold keeps the history that it needs, unless it is renewed.',
  },
  keyRetentionDays: {
    ...days,
    default: 30,
    min: 0,
    max: 36_525,
    description: 'Days that a value of a key is kept in the history after the next one; 0: for ever.',
  },
  keyRetentionChanges: {
    ...count,
    default: 0,
    min: 0,
    max: 1_000_000_000,
    description: 'Changes of a key that its history keeps behind the newest; 0: any number.',
  },
  schemaBytes: {
    ...bytes,
    default: 63,
    min: 1,
    max: 63,
    description: "Length of the schema's name in UTF-8.",
  },
  completedRetentionDays: {
    ...days,
    default: 1,
    min: 0,
    max: 3650,
    description: 'How long a completed job is kept.',
  },
  cancelledRetentionDays: {
    ...days,
    default: 7,
    min: 0,
    max: 3650,
    description: 'How long a cancelled job is kept.',
  },
  discardedRetentionDays: {
    ...days,
    default: 30,
    min: 0,
    max: 3650,
    description: 'How long a discarded job is kept once decided.',
  },
  idempotencyHours: {
    unit: 'hours',
    integer: false,
    default: 24,
    min: 1,
    max: 24 * 365,
    description: 'How long the answer to an enqueue with an idempotency key is remembered.',
  },
  bulkCount: {
    ...count,
    default: 10_000,
    min: 0,
    max: 100_000,
    description: 'Jobs in one bulk enqueue.',
  },
  pageRows: { ...count, default: 50, min: 1, max: 1000, description: 'Rows on one page of a list.' },
  sequenceBlock: {
    ...count,
    default: 1000,
    min: 1,
    max: 1_000_000,
    description: 'Values that a cached sequence draws at a time.',
  },
  lockLeaseMs: {
    ...ms,
    default: 30 * SECOND,
    min: 100,
    max: DAY,
    description: 'How long a lock is held if it is neither extended nor renewed.',
  },
  waitMs: {
    ...ms,
    default: 0,
    min: 0,
    max: DAY,
    description: 'How long to wait for a lock that another holds.',
  },
  retryMs: {
    ...ms,
    default: 200,
    min: 10,
    max: HOUR,
    description: 'How long to wait between two tries for a lock.',
  },
  scriptBytes: {
    ...bytes,
    default: undefined,
    min: 1,
    max: MIB,
    description: 'Length of a script in UTF-8.',
  },
  scriptNesting: {
    ...count,
    default: undefined,
    min: 0,
    max: 200,
    description: 'Blocks and brackets of a script inside one another.',
  },
  scriptSteps: {
    ...count,
    default: undefined,
    min: 0,
    max: 1_000_000,
    description: 'Steps that one run of a script may take, loops included.',
  },
  scriptItems: {
    ...count,
    default: undefined,
    min: 0,
    max: 100_000,
    description: 'Items of all arrays of a script at one time.',
  },
  scriptTextBytes: {
    ...bytes,
    default: undefined,
    min: 0,
    max: 16 * MIB,
    description: 'Size of one text that a script makes.',
  },
  scriptTimeoutMs: {
    ...ms,
    default: 5 * SECOND,
    min: 1,
    max: 5 * MINUTE,
    description: 'How long a script may run.',
  },
  scriptSleepMs: {
    ...ms,
    default: undefined,
    min: 0,
    max: 5 * MINUTE,
    description: 'One sleep of a script.',
  },
  lockWaitMs: {
    ...ms,
    default: SECOND,
    min: 0,
    max: 5 * MINUTE,
    description: 'How long a script waits for a key that another transaction has locked.',
  },
} as const satisfies Record<string, Limit>

/** Name of a row of {@link limits}. */
export type LimitName = keyof typeof limits
