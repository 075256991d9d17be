export {
  type CalledEffect,
  type ComparedEffect,
  type CrashPoint,
  CrashReport,
  type CrashVerdict,
} from './crash/crash-report.ts'
export { type CrashPointOptions, everyCrashPoint } from './crash/every-crash-point.ts'
export type { CrashWorld, ObservedCall, ObservedJob } from './crash/observe.ts'
export type { DrainOptions, DrainReport } from './drain.ts'
export { DrainError, type NamedJob } from './errors.ts'
export type { EnqueuedJob, EnqueuedOptions } from './expect-enqueued.ts'
export { type Fake, type FakeCall, fake } from './fake.ts'
export type { JobEnd, JobOutcome } from './job-end.ts'
export { everyKill, type KillOptions, type KillWorld } from './kill/every-kill.ts'
export { createTestApp, TestApp, type TestAppOptions } from './test-app.ts'
export type { UndeclaredWrite } from './undeclared-writes.ts'
export type { TestClock } from './virtual-clock.ts'
