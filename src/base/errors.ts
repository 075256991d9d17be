/** Stable names of everything that can go wrong on purpose; part of the public API. */
export type ErrorCode =
  | 'INVALID_ARGUMENT'
  | 'INVALID_INPUT'
  | 'NOT_STORABLE'
  | 'TOO_LARGE'
  | 'LEASE_LOST'
  | 'LOCK_LOST'
  | 'OUTCOME_UNKNOWN'
  | 'UNAVAILABLE'
  | 'TRANSACTION_ABORTED'
  | 'TRANSACTION_REQUIRED'
  | 'OUTSIDE_TRANSACTION'
  | 'SCHEMA_VERSION'
  | 'COMPOSITION'
  | 'FOLDER_LOCKED'
  | 'UNKNOWN_JOB'
  | 'UNDECLARED_EFFECT'
  | 'RESOURCE'
  | 'AUTHORIZATION_REFUSED'
  | 'JOB_NOT_FOUND'
  | 'UNIQUE_CONFLICT'
  | 'DATABASE'
  | 'CLOSED'
  | 'JOB_TIMEOUT'
  | 'JOB_CANCELLED'
  | 'SHUTDOWN'
  | 'EFFECT_UNCERTAIN'
  | 'EFFECT_BUSY'
  | 'EFFECT_UNDECIDED'
  | 'EFFECT_TIMEOUT'
  | 'ATTEMPT_ENDED'
  | 'DRAIN'

/** What the failed call changed in the database: nothing, or perhaps all it was to change. */
export type Changed = 'nothing' | 'unknown'

/** The base of every error the library throws. Switch on `code`; `message` is for people. */
export abstract class HoldfastError extends Error {
  abstract readonly code: ErrorCode
  readonly changed: Changed = 'nothing'
}

/** An argument or option is outside what its documentation allows. Nothing was sent. */
export class InvalidArgumentError extends HoldfastError {
  override readonly name = 'InvalidArgumentError'
  readonly code = 'INVALID_ARGUMENT'
  /** The argument or option, as the caller wrote it. */
  readonly field: string
  /** What is wrong with it, worded to follow the field's name. */
  readonly problem: string

  constructor(facts: { readonly field: string; readonly problem: string }, options?: ErrorOptions) {
    super(`${facts.field} ${facts.problem}`, options)
    this.field = facts.field
    this.problem = facts.problem
  }
}

/** One fault of an input, as the job's schema told it. */
export interface InputIssue {
  /** Where in the input, for instance `lines[0].sku`; empty for the input itself. */
  readonly path: string
  readonly message: string
}

/** The input does not fit the schema of the job or producer. Nothing was sent: correct the input and call again. */
export class InvalidInputError extends HoldfastError {
  override readonly name = 'InvalidInputError'
  readonly code = 'INVALID_INPUT'
  /** Name of the job, or of the producer. */
  readonly job: string
  readonly issues: readonly InputIssue[]

  constructor(
    facts: {
      readonly job: string
      readonly issues: readonly InputIssue[]
      readonly kind?: EffectOwner['kind']
    },
    options?: ErrorOptions,
  ) {
    const [first] = facts.issues
    const where = first?.path ? ` at "${first.path}"` : ''
    super(
      `the input of ${facts.kind ?? 'job'} "${facts.job}" does not fit its schema${where}; ` +
        `see "issues" of this error for all ${facts.issues.length}`,
      options,
    )
    this.job = facts.job
    this.issues = facts.issues
  }
}

/** A value holds something that JSON in PostgreSQL cannot hold exactly. Nothing was sent. */
export class NotStorableError extends HoldfastError {
  override readonly name = 'NotStorableError'
  readonly code = 'NOT_STORABLE'
  /** Where, for instance `input.lines[0].total`. */
  readonly path: string
  readonly problem: string

  constructor(facts: { readonly path: string; readonly problem: string }, options?: ErrorOptions) {
    super(`${facts.path} cannot be stored: ${facts.problem}`, options)
    this.path = facts.path
    this.problem = facts.problem
  }
}

/** A value is larger than its limit. Nothing was sent: store the bulk elsewhere and pass a reference. */
export class TooLargeError extends HoldfastError {
  override readonly name = 'TooLargeError'
  readonly code = 'TOO_LARGE'
  readonly field: string
  /** Bytes of UTF-8 counted so far: counting stops soon after the limit. */
  readonly bytes: number
  readonly maxBytes: number

  constructor(
    facts: { readonly field: string; readonly bytes: number; readonly maxBytes: number },
    options?: ErrorOptions,
  ) {
    super(
      `${facts.field} has at least ${facts.bytes} bytes and may have ${facts.maxBytes}; ` +
        'store the bulk elsewhere and pass a reference to it',
      options,
    )
    this.field = facts.field
    this.bytes = facts.bytes
    this.maxBytes = facts.maxBytes
  }
}

/**
 * The lease ran out or was taken over, so this holder no longer acts for the job.
 *
 * Stop the work. Nothing this holder writes with its token is accepted any more; another
 * worker has the job, or will.
 */
export class LeaseLostError extends HoldfastError {
  override readonly name = 'LeaseLostError'
  readonly code = 'LEASE_LOST'
  readonly jobId: bigint
  /** The token this holder was given, and must not use again. */
  readonly fencingToken: bigint

  constructor(facts: { readonly jobId: bigint; readonly fencingToken: bigint }, options?: ErrorOptions) {
    super(
      `the lease on job ${facts.jobId} (fencing token ${facts.fencingToken}) is lost; ` +
        'stop this work: the job goes on elsewhere',
      options,
    )
    this.jobId = facts.jobId
    this.fencingToken = facts.fencingToken
  }
}

/**
 * Why a lock is not held: `not-acquired`: it was somebody else's for as long as was waited. `expired`: its lease is over, or
 * may be. `gone`: PostgreSQL says that it is not held with that token: it was taken over, or released by force.
 */
export type LockLoss = 'not-acquired' | 'expired' | 'gone'

/**
 * The lock is not, or may not be, this holder's any more. Reason of a lock's `signal`; thrown by `locks.assert`.
 *
 * Stop the work that it guarded. Acquire it anew, and start over from what the database says.
 */
export class LockLostError extends HoldfastError {
  override readonly name = 'LockLostError'
  readonly code = 'LOCK_LOST'
  readonly resource: string
  /** The token this holder was given, and must not use again; `undefined` if it was given none. */
  readonly fencingToken: bigint | undefined
  readonly why: LockLoss

  constructor(
    facts: {
      readonly resource: string
      readonly fencingToken: bigint | undefined
      readonly why: LockLoss
    },
    options?: ErrorOptions,
  ) {
    const token = facts.fencingToken === undefined ? '' : ` (fencing token ${facts.fencingToken})`
    const said = {
      'not-acquired': 'was not acquired',
      expired: 'may be lost: its lease is over',
      gone: 'is not held any more',
    }[facts.why]
    super(
      `the lock on "${facts.resource}"${token} ${said}; stop the work it guards, and acquire it anew`,
      options,
    )
    this.resource = facts.resource
    this.fencingToken = facts.fencingToken
    this.why = facts.why
  }
}

/**
 * The answer of the database was lost after a write had been sent: all of it or none of it happened.
 *
 * Repeat only what is safe to repeat (an enqueue with an `idempotencyKey` is), or look first.
 */
export class OutcomeUnknownError extends HoldfastError {
  override readonly name = 'OutcomeUnknownError'
  readonly code = 'OUTCOME_UNKNOWN'
  override readonly changed = 'unknown'
  readonly operation: string

  constructor(facts: { readonly operation: string }, options?: ErrorOptions) {
    super(
      `the answer to "${facts.operation}" was lost: it happened wholly or not at all; ` +
        'look before you repeat it, or repeat it with an idempotency key',
      options,
    )
    this.operation = facts.operation
  }
}

/** The database cannot be reached, or broke off what can be repeated. Nothing changed: try again later. */
export class UnavailableError extends HoldfastError {
  override readonly name = 'UnavailableError'
  readonly code = 'UNAVAILABLE'
  readonly operation: string

  constructor(facts: { readonly operation: string }, options?: ErrorOptions) {
    super(
      `the database could not be reached for "${facts.operation}"; nothing changed, try again later`,
      options,
    )
    this.operation = facts.operation
  }
}

/** A statement in the transaction had failed before, so PostgreSQL rolls all of it back. */
export class TransactionAbortedError extends HoldfastError {
  override readonly name = 'TransactionAbortedError'
  readonly code = 'TRANSACTION_ABORTED'

  constructor(options?: ErrorOptions) {
    super(
      'the transaction is aborted because a statement in it failed, so nothing of it is committed; ' +
        'roll back (or to a savepoint) and run it again',
      options,
    )
  }
}

/** What was passed as `tx` is not an open transaction that the library knows how to use. */
export class TransactionRequiredError extends HoldfastError {
  override readonly name = 'TransactionRequiredError'
  readonly code = 'TRANSACTION_REQUIRED'
  readonly problem: string

  constructor(facts: { readonly problem: string }, options?: ErrorOptions) {
    super(`"tx" must be an open transaction, but ${facts.problem}`, options)
    this.problem = facts.problem
  }
}

/** A call inside a transaction's callback did not use that transaction. Nothing was sent. */
export class OutsideTransactionError extends HoldfastError {
  override readonly name = 'OutsideTransactionError'
  readonly code = 'OUTSIDE_TRANSACTION'

  constructor(options?: ErrorOptions) {
    super(
      'a call inside a transaction has to use that transaction: pass it as "tx", ' +
        'or make the call after the transaction has ended',
      options,
    )
  }
}

/** The tables in the database do not fit this version of the library. */
export class SchemaVersionError extends HoldfastError {
  override readonly name = 'SchemaVersionError'
  readonly code = 'SCHEMA_VERSION'
  /** The version in the database; `undefined` if the schema or its tables are missing. */
  readonly found: number | undefined
  /** The version this library needs; `undefined` where the failing statement could not know it. */
  readonly expected: number | undefined
  readonly schema: string

  constructor(
    facts: {
      readonly found: number | undefined
      readonly expected: number | undefined
      readonly schema: string
    },
    options?: ErrorOptions,
  ) {
    const found = facts.found === undefined ? 'lacks tables this version needs' : `is at ${facts.found}`
    const needed = facts.expected === undefined ? '' : ` and ${facts.expected} is needed`
    super(
      `schema "${facts.schema}" ${found}${needed}; run "holdfast migrate", or deploy the version that fits it`,
      options,
    )
    this.found = facts.found
    this.expected = facts.expected
    this.schema = facts.schema
  }
}

/** The app is declared in a way that cannot work; all faults are listed at once. Nothing was started. */
export class CompositionError extends HoldfastError {
  override readonly name = 'CompositionError'
  readonly code = 'COMPOSITION'
  readonly faults: readonly string[]

  constructor(facts: { readonly faults: readonly string[] }, options?: ErrorOptions) {
    super(`the app cannot work as declared; correct this:\n- ${facts.faults.join('\n- ')}`, options)
    this.faults = facts.faults
  }
}

/** Another process has the folder of an embedded database open. Nothing was opened. */
export class FolderLockedError extends HoldfastError {
  override readonly name = 'FolderLockedError'
  readonly code = 'FOLDER_LOCKED'
  readonly folder: string
  /** The process that has it open. */
  readonly pid: number

  constructor(facts: { readonly folder: string; readonly pid: number }, options?: ErrorOptions) {
    super(
      `the database folder "${facts.folder}" is open in process ${facts.pid}, and only one process may use it; ` +
        'stop that one, or use a PostgreSQL server',
      options,
    )
    this.folder = facts.folder
    this.pid = facts.pid
  }
}

/** The app declares no job of this name. Nothing was sent: add the job to the app, or correct the name. */
export class UnknownJobError extends HoldfastError {
  override readonly name = 'UnknownJobError'
  readonly code = 'UNKNOWN_JOB'
  readonly jobName: string

  constructor(facts: { readonly jobName: string }, options?: ErrorOptions) {
    super(
      `no job named "${facts.jobName}" is declared; add it to the app's jobs or correct the name`,
      options,
    )
    this.jobName = facts.jobName
  }
}

/** What declares effects. */
export interface EffectOwner {
  readonly kind: 'job' | 'producer'
  readonly name: string
}

/** A job or producer did what it does not declare. It was stopped before: nothing was sent. */
export class UndeclaredEffectError extends HoldfastError {
  override readonly name = 'UndeclaredEffectError'
  readonly code = 'UNDECLARED_EFFECT'
  readonly owner: EffectOwner
  /** What it wanted to do, such as `enqueue:sales.sendConfirmation`. */
  readonly effect: string
  /** What it declares. */
  readonly declared: readonly string[]

  constructor(
    facts: { readonly owner: EffectOwner; readonly effect: string; readonly declared: readonly string[] },
    options?: ErrorOptions,
  ) {
    const { owner, effect, declared } = facts
    const definition = owner.kind === 'job' ? 'defineJob' : 'defineProducer'
    super(
      `${owner.kind} "${owner.name}" does not declare "${effect}" (it declares ${declared.join(', ') || 'nothing'}); ` +
        `add it to "effects" where ${definition} defines "${owner.name}", or leave it`,
      options,
    )
    this.owner = owner
    this.effect = effect
    this.declared = declared
  }
}

/** A resource that a job uses could not be built; `cause` says why. The attempt fails, and the next one asks again. */
export class ResourceError extends HoldfastError {
  override readonly name = 'ResourceError'
  readonly code = 'RESOURCE'
  readonly resource: string
  readonly tenant: string

  constructor(facts: { readonly resource: string; readonly tenant: string }, options?: ErrorOptions) {
    const tenant = facts.tenant === '' ? '' : ` for tenant "${facts.tenant}"`
    super(`the resource "${facts.resource}" could not be built${tenant}; see "cause"`, options)
    this.resource = facts.resource
    this.tenant = facts.tenant
  }
}

/** `authorize` refused the attempt before its handler was called. It is retried as any failed attempt. */
export class AuthorizationRefusedError extends HoldfastError {
  override readonly name = 'AuthorizationRefusedError'
  readonly code = 'AUTHORIZATION_REFUSED'
  readonly jobName: string
  readonly reason: string

  constructor(facts: { readonly jobName: string; readonly reason: string }, options?: ErrorOptions) {
    super(`not authorized to run job "${facts.jobName}": ${facts.reason}`, options)
    this.jobName = facts.jobName
    this.reason = facts.reason
  }
}

/** There is no such job: the id is wrong, or the job was removed by retention. */
export class JobNotFoundError extends HoldfastError {
  override readonly name = 'JobNotFoundError'
  readonly code = 'JOB_NOT_FOUND'
  readonly jobId: bigint

  constructor(facts: { readonly jobId: bigint }, options?: ErrorOptions) {
    super(`there is no job ${facts.jobId}; check the id, or lengthen the retention of its queue`, options)
    this.jobId = facts.jobId
  }
}

/** A live job has the same unique key, and the enqueue asked for an error then. Nothing was enqueued. */
export class UniqueConflictError extends HoldfastError {
  override readonly name = 'UniqueConflictError'
  readonly code = 'UNIQUE_CONFLICT'
  readonly jobName: string
  readonly uniqueKey: string | undefined
  readonly conflictingJobId: bigint

  constructor(
    facts: {
      readonly jobName: string
      readonly uniqueKey?: string | undefined
      readonly conflictingJobId: bigint
    },
    options?: ErrorOptions,
  ) {
    super(
      `job ${facts.conflictingJobId} of "${facts.jobName}" has the same unique key and is not finished; ` +
        'wait for it, or enqueue with another "onConflict"',
      options,
    )
    this.jobName = facts.jobName
    this.uniqueKey = facts.uniqueKey
    this.conflictingJobId = facts.conflictingJobId
  }
}

/** PostgreSQL refused a statement; nothing of it happened. `cause` is what the driver said. */
export class DatabaseError extends HoldfastError {
  override readonly name = 'DatabaseError'
  readonly code = 'DATABASE'
  readonly sqlState: string
  readonly operation: string

  constructor(
    facts: { readonly sqlState: string; readonly operation: string; readonly detail?: string | undefined },
    options?: ErrorOptions,
  ) {
    const detail = facts.detail === undefined ? '' : ` (${facts.detail})`
    super(
      `PostgreSQL refused "${facts.operation}" with SQLSTATE ${facts.sqlState}${detail}; ` +
        'see "cause" for its own words',
      options,
    )
    this.sqlState = facts.sqlState
    this.operation = facts.operation
  }
}

/** The app, driver or lock was closed before this call. Nothing was sent: open a new one. */
export class ClosedError extends HoldfastError {
  override readonly name = 'ClosedError'
  readonly code = 'CLOSED'

  constructor(facts: { readonly what: string }, options?: ErrorOptions) {
    super(`the ${facts.what} is closed; open a new one`, options)
  }
}

/** Reason of `ctx.signal`: the handler ran longer than the job's `timeoutMs`. */
export class JobTimeoutError extends HoldfastError {
  override readonly name = 'JobTimeoutError'
  readonly code = 'JOB_TIMEOUT'
  readonly timeoutMs: number

  constructor(facts: { readonly timeoutMs: number }, options?: ErrorOptions) {
    super(
      `the attempt ran longer than its ${facts.timeoutMs} ms; raise timeoutMs or do less in one job`,
      options,
    )
    this.timeoutMs = facts.timeoutMs
  }
}

/** Reason of `ctx.signal`: somebody cancelled the job. It is not retried. */
export class JobCancelledError extends HoldfastError {
  override readonly name = 'JobCancelledError'
  readonly code = 'JOB_CANCELLED'
  readonly reason: string | undefined

  constructor(facts: { readonly reason?: string | undefined } = {}, options?: ErrorOptions) {
    super('the job was cancelled; end the handler soon, its result is not recorded', options)
    this.reason = facts.reason
  }
}

/** Reason of `ctx.signal`: the worker stops, and its time to finish is over. The attempt is not counted. */
export class ShutdownError extends HoldfastError {
  override readonly name = 'ShutdownError'
  readonly code = 'SHUTDOWN'

  constructor(options?: ErrorOptions) {
    super('the worker is stopping; end the handler soon, the job is handed back and runs again', options)
  }
}
