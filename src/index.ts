/** Durable jobs that live in the application's PostgreSQL. */
export { App, defineApp } from './app/app.ts'
export type { AppOptions, QueueOptions, WorkerOptions } from './app/app-options.ts'
export { createLogger, type LoggerOptions, type LogLevel, type LogStream } from './app/logger.ts'
export type { BackoffPolicy, ExponentialBackoff, FixedBackoff } from './base/backoff.ts'
export * from './base/errors.ts'
export type { EventListener, EventMap, EventName, Events, JobFacts } from './base/events.ts'
export { limits } from './base/limits.ts'
export type { LogFields, Logger } from './base/logger.ts'
export type {
  Confirmation,
  EffectCall,
  EffectOptions,
  IfUncertain,
  UncertainCall,
} from './effects/effect-options.ts'
export {
  AttemptEndedError,
  EffectBusyError,
  type EffectFacts,
  EffectTimeoutError,
  EffectUncertainError,
  EffectUndecidedError,
  notHappened,
} from './effects/errors.ts'
export type { OutsideEffectOptions } from './effects/outside-effect.ts'
export type { CancelAnswer } from './jobs/cancel.ts'
export type { JobContext, RunningJob } from './jobs/context.ts'
export {
  type AnyJob,
  defineJob,
  type Job,
  type JobInput,
  type JobOptions,
  type JobResult,
} from './jobs/define-job.ts'
export type { JobToEnqueue } from './jobs/enqueue.ts'
export type { EnqueueAnswer, EnqueueOptions } from './jobs/enqueue-options.ts'
export type { JobEnd, JobHandle, JobProgress, JobSnapshot } from './jobs/job-handle.ts'
export type { JobState } from './jobs/state.ts'
export type { QueryResult, Transaction } from './jobs/transaction.ts'
export type { MigrateResult } from './migrations/migrate.ts'
export { PermanentError } from './worker/outcome.ts'
export type { Worker } from './worker/worker.ts'
