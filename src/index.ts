/** Durable jobs that live in the application's PostgreSQL. */
export { App, defineApp } from './app/app.ts'
export type { AppOptions, QueueOptions, ResourceReplacement, WorkerOptions } from './app/app-options.ts'
export { createLogger, type LoggerOptions, type LogLevel, type LogStream } from './app/logger.ts'
export type { DryRun, ProduceOptions } from './app/produce.ts'
export type { BackoffPolicy, ExponentialBackoff, FixedBackoff } from './base/backoff.ts'
export type { Durability } from './base/durability.ts'
export * from './base/errors.ts'
export type { EventListener, EventMap, EventName, Events, JobFacts } from './base/events.ts'
export { limits } from './base/limits.ts'
export type { LogFields, Logger } from './base/logger.ts'
export type { QueryResult } from './driver/query-result.ts'
export type { EffectName, InsideEffect, OutsideEffect } from './effects/effect-name.ts'
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
export type { Authorization, Authorize, AuthorizeContext } from './jobs/authorize.ts'
export type { CancelAnswer } from './jobs/cancel.ts'
export type { JobContext, RunningJob } from './jobs/context.ts'
export {
  type AnyJob,
  defineJob,
  type Job,
  type JobInput,
  type JobNamed,
  type JobOptions,
  type JobResult,
} from './jobs/define-job.ts'
export type { JobToEnqueue } from './jobs/enqueue.ts'
export type { ContextData, EnqueueAnswer, EnqueueOptions } from './jobs/enqueue-options.ts'
export type { JobEnd, JobHandle, JobProgress, JobSnapshot } from './jobs/job-handle.ts'
export type { JobState } from './jobs/state.ts'
export type { Transaction } from './jobs/transaction.ts'
export { KeyHoldExpiredError, KeyValueError } from './keys/errors.ts'
export type {
  DeleteAnswer,
  ExtendAnswer,
  IncrementAnswer,
  KeyRevision,
  SetAnswer,
} from './keys/key-answers.ts'
export type { KeyEntry } from './keys/key-entry.ts'
export type { KeyHold } from './keys/key-hold.ts'
export type { KeyPage, KeySelection, ListOptions } from './keys/key-list.ts'
export type {
  DeleteOptions,
  GetOptions,
  HoldOptions,
  KeyConditions,
  KeyOptions,
  KeyToSet,
  ReadOptions,
  RevisionsOptions,
  SetOptions,
} from './keys/key-options.ts'
export type { KeyChange, KeyWatch, Watched, WatchOptions } from './keys/key-watch.ts'
export type { Keys } from './keys/keys.ts'
export type { ListLocksOptions, LockPage } from './locks/list-locks.ts'
export type { Lock, LockCallOptions, LockMembers } from './locks/lock.ts'
export type { AcquireOptions, LockId, LockInfo, LockPlaceOptions } from './locks/lock-options.ts'
export type { ForceReleased, ForceReleaseOptions, Locks } from './locks/locks.ts'
export type { MigrateResult } from './migrations/migrate.ts'
export {
  defineProducer,
  type Producer,
  type ProducerInput,
  type ProducerOptions,
  type ProducerResult,
} from './producers/define-producer.ts'
export type { IntendedEnqueue, ProducerTransaction } from './producers/producer-transaction.ts'
export {
  type ProvidedEffect,
  type Resource,
  type ResourceFactory,
  type ResourceOptions,
  type ResourceRequest,
  type ResourcesOf,
  resource,
  type Uses,
} from './resources/resource.ts'
export {
  ScriptAbortedError,
  type ScriptAbortReason,
  ScriptError,
  type ScriptErrorReason,
  ScriptSyntaxError,
  ScriptThrownError,
  ScriptValueError,
} from './scripts/errors.ts'
export type { ScriptParam, ScriptParams } from './scripts/params.ts'
export type { ScriptResult, ScriptResultType, ScriptValue } from './scripts/result.ts'
export type { ScriptOptions } from './scripts/scripts.ts'
export type { CachedSequence, CachedSequenceOptions } from './sequences/cached-sequence.ts'
export {
  SequenceExhaustedError,
  SequenceExistsError,
  type SequenceFacts,
  SequenceNotFoundError,
} from './sequences/errors.ts'
export type {
  CreateSequenceOptions,
  DrawOptions,
  ListSequencesOptions,
  ReservedRange,
  SequenceInfo,
  SequenceOptions,
  SequencePage,
} from './sequences/sequence-options.ts'
export type { Sequences } from './sequences/sequences.ts'
export { PermanentError } from './worker/outcome.ts'
export type { Worker } from './worker/worker.ts'
