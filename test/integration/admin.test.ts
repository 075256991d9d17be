import { expect, it } from 'vitest'
import { cancelJob } from '../../src/admin/cancel-job.ts'
import { discardJob } from '../../src/admin/discard-job.ts'
import { listJobs } from '../../src/admin/list-jobs.ts'
import { moveAllToQueue, moveToQueue } from '../../src/admin/move-jobs.ts'
import { pruneJobs } from '../../src/admin/prune-jobs.ts'
import { listQueues, pauseQueue, resumeQueue } from '../../src/admin/queues.ts'
import { retryJob } from '../../src/admin/retry-job.ts'
import type { AdminServices } from '../../src/admin/services.ts'
import { showJob } from '../../src/admin/show-job.ts'
import { readStatus, schemaStatus } from '../../src/admin/status.ts'
import { run, runOne } from '../../src/driver/operation.ts'
import { claimJobs } from '../../src/jobs/sql/claim-jobs.ts'
import { closeLeases } from '../../src/jobs/sql/close-leases.ts'
import { registerWorker } from '../../src/jobs/sql/register-worker.ts'
import { settleAttempts } from '../../src/jobs/sql/settle-attempts.ts'
import { LAST } from '../../src/worker/low-water.ts'
import { type Backend, describeEachBackend } from '../support/backends.ts'

function servicesOf(backend: Backend): AdminServices {
  return {
    driver: backend.driver,
    database: { queryable: backend.driver, schema: 'holdfast', prepare: false },
  }
}

async function define(backend: Backend, ...names: string[]): Promise<void> {
  for (const name of names)
    await backend.sql(
      `insert into holdfast.job_definition (name, queue, priority, max_attempts) values ($1, 'default', 0, 3) on conflict do nothing`,
      [name],
    )
}

async function enqueue(backend: Backend, options = '', name = 'work'): Promise<string> {
  await define(backend, name)
  const [row] = await backend.sql<{ id: string }>(
    `select id::text from holdfast.enqueue('${name}'${options})`,
  )
  return row?.id as string
}

interface Hands {
  readonly id: bigint
  claim(limit?: number, queue?: string): Promise<bigint | null>
  /** Ends a lease of which nothing is left. */
  close(token: bigint): Promise<void>
  end(
    jobId: string,
    token: bigint,
    to: 'discarded' | 'completed' | 'cancelled' | 'scheduled',
  ): Promise<readonly string[]>
}

/** A worker by its statements alone, so that a test decides when it claims and settles. */
async function hands(backend: Backend, queues = ['default'], jobs = ['work']): Promise<Hands> {
  const { database } = servicesOf(backend)
  const { id } = await runOne(database, registerWorker, {
    name: 'hands',
    app: 'test',
    version: '0',
    leaseMs: 60_000,
    queues: JSON.stringify(queues.map((name) => ({ name, concurrency: 2 }))),
    jobs: JSON.stringify(jobs.map((name) => ({ name, contract: 'c' }))),
    queueNames: queues,
  })
  return {
    id,
    async claim(limit = 1, queue = 'default') {
      const priorities = Array.from({ length: 10 }, (_, priority) => priority)
      const [batch] = await run(database, claimJobs, {
        workerId: id,
        queues: [queue],
        wanted: [limit],
        free: [limit],
        classQueues: priorities.map(() => queue),
        classPriorities: priorities,
        lastPriorities: priorities,
        after: priorities.map(() => 0n),
        upto: priorities.map(() => LAST),
        suspects: true,
      })
      return batch?.token ?? null
    },
    async close(token) {
      const { left } = await runOne(database, closeLeases, { workerId: id, tokens: [token] })
      expect(left).toBeNull()
    },
    async end(jobId, token, to) {
      const item = {
        token: String(token),
        job: jobId,
        to,
        ms: 5,
        ...(to === 'scheduled' ? { ended: 'failed', delay: 3_600_000 } : {}),
        ...(to === 'discarded' ? { reason: 'no attempts left' } : {}),
        error: { name: 'Error', message: 'boom' },
      }
      const { refused } = await runOne(database, settleAttempts, {
        workerId: id,
        tokens: [token],
        items: JSON.stringify([item]),
        keep: 20,
      })
      return (refused ?? []) as string[]
    },
  }
}

/** Enqueues a job and has its only attempt end so. */
async function ended(
  backend: Backend,
  to: 'discarded' | 'completed' | 'cancelled',
  options = '',
): Promise<string> {
  const id = await enqueue(backend, options)
  const worker = await hands(backend)
  const token = await worker.claim()
  expect(await worker.end(id, token as bigint, to)).toEqual([])
  return id
}

describeEachBackend('admin', (suite) => {
  it('pages through all jobs once, newest first, while others are enqueued and end', async () => {
    await using backend = await suite.open()
    const { database } = servicesOf(backend)
    const ids: string[] = []
    for (let n = 0; n < 7; n += 1) ids.push(await enqueue(backend, n % 2 ? `, delay_ms => 60000` : ''))
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await listJobs(database, { limit: 3, after })
      seen.push(...page.jobs.map(({ id }) => id))
      after = page.next ?? undefined
      await enqueue(backend)
      await discardJob(servicesOf(backend), ids[0] as string, 'for the test')
    } while (after !== undefined)
    expect(seen).toEqual([...ids].reverse())
    const states = async (state: string) => (await listJobs(database, { state })).jobs.map((job) => job.state)
    expect(await states('scheduled')).toEqual(['scheduled', 'scheduled', 'scheduled'])
    expect(await states('discarded')).toEqual(['discarded'])
    expect(await states('available')).toHaveLength(6)
    await expect(listJobs(database, { state: 'sleeping' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    await expect(listJobs(database, { limit: 1.5 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  it('filters lists by name and queue, and never shows inputs', async () => {
    await using backend = await suite.open()
    const { database } = servicesOf(backend)
    await enqueue(backend, `, input => '{"secret": 1}', queue => 'a'`, 'one')
    await enqueue(backend, `, queue => 'a'`, 'two')
    await enqueue(backend, `, queue => 'b'`, 'two')
    const two = await listJobs(database, { name: 'two', queue: 'a' })
    expect(two.jobs).toMatchObject([{ name: 'two', queue: 'a', state: 'available' }])
    expect((await listJobs(database, { queue: 'a' })).jobs).toHaveLength(2)
    expect(JSON.stringify(await listJobs(database), (_, value: unknown) => String(value))).not.toContain(
      'secret',
    )
  })

  it('shows an input digit for digit', async () => {
    await using backend = await suite.open()
    const input = '{"n": 12345678901234567890.10, "e":1E400,  "a": [ 1.0 ]}'
    const id = await enqueue(backend, `, input => '${input}'::json`)
    expect((await showJob(servicesOf(backend).database, id)).facts.input).toBe(input)
  })

  it('says in one sentence why a job is not running, whatever the reason', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const { database } = services
    const why = async (id: string) => (await showJob(database, id)).explanation
    const id = await enqueue(backend)
    expect(await why(id)).toContain('no worker is alive')
    await hands(backend, ['other'], [])
    expect(await why(id)).toContain('no live worker serves queue "default"')
    await hands(backend, ['default'], ['elsewhere'])
    expect(await why(id)).toContain('knows job "work"')
    const worker = await hands(backend)
    expect(await why(id)).toContain('it is the next')
    const second = await enqueue(backend)
    expect(await why(second)).toContain('1 job is ahead of it')
    await pauseQueue(database, 'default', { reason: 'provider is down' })
    expect(await why(second)).toMatch(/queue "default" is paused since .*: provider is down/)
    await resumeQueue(database, 'default')
    const later = await enqueue(backend, ', delay_ms => 7200000')
    expect(await why(later)).toMatch(/not due until .* \(in (1|2) h\)/)
    const token = (await worker.claim()) as bigint
    expect(await why(id)).toMatch(
      /attempt 1 of 3 is executing on worker \d+ \(hands\), whose lease lasts until/,
    )
    expect(await why(second)).toContain('1 of 4 slots of queue "default" are busy')
    await cancelJob(services, id, undefined)
    expect(await why(id)).toContain('it was cancelled and ends so')
    await worker.end(id, token, 'completed')
    expect(await why(id)).toMatch(/^cancelled at .*: cancelled while it ran/)
    await worker.claim()
    await backend.sql(`update holdfast.worker set heartbeat_at = now() - interval '1 hour'`)
    expect(await why(second)).toMatch(
      /has not renewed its lease, which ended at .*; any live worker rescues it/,
    )
    await expect(why('999')).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  })

  it('retries a discarded job with its history, its key, and one more attempt', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const id = await ended(backend, 'discarded', `, unique_key => 'k', max_attempts => 1`)
    const answer = await retryJob(services, id)
    expect(answer).toMatchObject({ status: 'ready', attempts: 1, maxAttempts: 2 })
    const { facts, attempts } = await showJob(services.database, id)
    expect(facts).toMatchObject({ state: 'available', attempts: 1, maxAttempts: 2, finishedAt: null })
    expect(attempts).toMatchObject([{ attempt: 1, ended: 'discarded' }])
    expect(JSON.parse(attempts[0]?.error as string)).toEqual({
      name: 'Error',
      message: 'boom',
      reason: 'no attempts left',
    })
    const [again] = await backend.sql(
      `select id::text, status from holdfast.enqueue('work', unique_key => 'k')`,
    )
    expect(again).toEqual({ id, status: 'existing' })
    expect(await retryJob(services, id)).toEqual({ status: 'not-retryable', state: 'available' })

    const worker = await hands(backend)
    const token = (await worker.claim()) as bigint
    expect((await showJob(services.database, id)).facts).toMatchObject({ state: 'executing', attempts: 2 })
    expect(await worker.end(id, token, 'discarded')).toEqual([])
    expect((await showJob(services.database, id)).attempts).toHaveLength(1)
  })

  it('retries a job that was cancelled while it waited, again and again', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const id = await enqueue(backend)
    for (let round = 1; round <= 3; round += 1) {
      expect(await cancelJob(services, id, `round ${round}`)).toEqual({ status: 'cancelled' })
      expect(await retryJob(services, id)).toMatchObject({ status: 'ready', attempts: 0 })
    }
    const { attempts } = await showJob(services.database, id)
    expect(attempts.map(({ error }) => (JSON.parse(error as string) as { reason: string }).reason)).toEqual([
      'round 1',
      'round 2',
      'round 3',
    ])
  })

  it('leaves a lease whose other jobs still run able to end, though one of its jobs was retried', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const [first, second] = [
      await enqueue(backend, ', max_attempts => 2'),
      await enqueue(backend, ', max_attempts => 2'),
    ]
    const worker = await hands(backend)
    const token = (await worker.claim(2)) as bigint
    await worker.end(first, token, 'discarded')
    await retryJob(services, first)
    expect((await showJob(services.database, first)).facts.state).toBe('available')
    expect(await worker.end(first, token, 'completed')).toEqual([first])
    expect(await worker.end(second, token, 'completed')).toEqual([])
    await worker.close(token)
    expect(await backend.sql('select token from holdfast.lease')).toEqual([])
    expect((await showJob(services.database, first)).facts.state).toBe('available')
  })

  it('refuses a retry whose unique key a live job holds, naming that job, and changes nothing', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const id = await ended(backend, 'discarded', `, unique_key => 'k', max_attempts => 1`)
    const holder = await enqueue(backend, `, unique_key => 'k'`)
    await expect(retryJob(services, id)).rejects.toMatchObject({
      code: 'UNIQUE_CONFLICT',
      conflictingJobId: BigInt(holder),
    })
    expect((await showJob(services.database, id)).facts.state).toBe('discarded')
    await cancelJob(services, holder, undefined)
    expect(await retryJob(services, id)).toMatchObject({ status: 'ready' })
  })

  it('makes a job available once, however many retry it at the same time', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const id = await ended(backend, 'discarded', `, unique_key => 'k', max_attempts => 1`)
    const answers = await Promise.all(Array.from({ length: 8 }, async () => await retryJob(services, id)))
    expect(answers.filter(({ status }) => status === 'ready')).toHaveLength(1)
    expect(await backend.sql('select job_id::text as id from holdfast.ready')).toEqual([{ id }])
    expect((await showJob(services.database, id)).facts.maxAttempts).toBe(2)
  })

  it('overwrites no ended job, by any command', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const id = await ended(backend, 'completed')
    expect(await retryJob(services, id)).toEqual({ status: 'not-retryable', state: 'completed' })
    expect(await cancelJob(services, id, 'x')).toEqual({ status: 'finished', state: 'completed' })
    expect(await discardJob(services, id, 'x')).toEqual({ status: 'not-waiting', state: 'completed' })
    expect(await moveToQueue(services, id, 'b')).toEqual({ status: 'not-waiting', state: 'completed' })
    expect((await showJob(services.database, id)).facts).toMatchObject({
      state: 'completed',
      queue: 'default',
    })
  })

  it('discards a waiting job in any place, frees its key, and leaves an executing one alone', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const ready = await enqueue(backend, `, unique_key => 'k'`)
    const scheduled = await enqueue(backend, ', delay_ms => 60000')
    expect(await discardJob(services, ready, 'not wanted')).toEqual({ status: 'discarded' })
    expect(await discardJob(services, scheduled, 'not wanted')).toEqual({ status: 'discarded' })
    expect((await showJob(services.database, ready)).explanation).toMatch(
      /^discarded at .*: not wanted; it waits for your decision/,
    )
    expect(await enqueue(backend, `, unique_key => 'k'`)).not.toBe(ready)
    await (await hands(backend)).claim()
    const [executing] = (await listJobs(services.database, { state: 'executing' })).jobs
    expect(await discardJob(services, executing?.id as string, 'x')).toEqual({
      status: 'not-waiting',
      state: 'executing',
    })
    await expect(discardJob(services, ready, undefined)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(discardJob(services, ready, 'two\nlines')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
  })

  it('moves jobs to another queue, where they can be claimed and cancelled, in their old order', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const old = await enqueue(backend, `, queue => 'gone'`)
    const later = await enqueue(backend, `, queue => 'gone', delay_ms => 60000`)
    await enqueue(backend, `, queue => 'kept'`)
    expect(
      (await readStatus(services.database, await schemaStatus(services.database))).unserved,
    ).toMatchObject([{ name: 'gone', available: 1n, scheduled: 1n }, { name: 'kept' }])
    expect(await moveAllToQueue(services, 'gone', 'kept')).toBe(2)
    expect(await moveAllToQueue(services, 'gone', 'kept')).toBe(0)
    await expect(moveAllToQueue(services, 'kept', 'kept')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    const worker = await hands(backend, ['kept'])
    await worker.claim(1, 'kept')
    expect((await showJob(services.database, old)).facts).toMatchObject({ state: 'executing', queue: 'kept' })
    expect(await moveToQueue(services, old, 'x')).toEqual({ status: 'not-waiting', state: 'executing' })
    expect(await moveToQueue(services, later, 'x')).toEqual({ status: 'moved' })
    expect(await cancelJob(services, later, undefined)).toEqual({ status: 'cancelled' })
    const [ready] = (await listJobs(services.database, { state: 'available', queue: 'kept' })).jobs
    expect(await moveToQueue(services, ready?.id as string, 'x')).toEqual({ status: 'moved' })
    expect((await showJob(services.database, ready?.id as string)).facts).toMatchObject({
      state: 'available',
      queue: 'x',
    })
    expect(await cancelJob(services, ready?.id as string, undefined)).toEqual({ status: 'cancelled' })
  })

  it('prunes ended jobs by state and age, and discarded ones only when asked', async () => {
    await using backend = await suite.open()
    const services = servicesOf(backend)
    const { database } = services
    const completed = await ended(backend, 'completed')
    const discarded = await ended(backend, 'discarded')
    const waiting = await enqueue(backend)
    expect(await pruneJobs(database)).toMatchObject([{ pruned: 0 }, { pruned: 0 }])
    expect(await pruneJobs(database, { olderThanDays: 0 })).toMatchObject([
      { state: 'completed', pruned: 1 },
      { pruned: 0 },
    ])
    await expect(showJob(database, completed)).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
    expect((await showJob(database, discarded)).facts.state).toBe('discarded')
    expect(await pruneJobs(database, { state: 'discarded', olderThanDays: 0 })).toMatchObject([{ pruned: 1 }])
    for (const table of ['outcome', 'attempt'])
      expect(await backend.sql(`select * from holdfast.${table}`)).toEqual([])
    expect((await showJob(database, waiting)).facts.state).toBe('available')
    await expect(pruneJobs(database, { state: 'available' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    await expect(pruneJobs(database, { olderThanDays: -1 })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
  })

  it('keeps ended jobs that an open lease still needs, until it is closed', async () => {
    await using backend = await suite.open()
    const { database } = servicesOf(backend)
    const [first, second] = [await enqueue(backend), await enqueue(backend)]
    const worker = await hands(backend)
    const token = (await worker.claim(2)) as bigint
    await worker.end(first, token, 'completed')
    expect(await pruneJobs(database, { olderThanDays: 0 })).toMatchObject([{ pruned: 0 }, { pruned: 0 }])
    await worker.end(second, token, 'completed')
    await worker.close(token)
    expect(await backend.sql('select token from holdfast.lease')).toEqual([])
    expect(await pruneJobs(database, { olderThanDays: 0 })).toMatchObject([{ pruned: 2 }, { pruned: 0 }])
  })

  it('pauses and resumes a known queue, keeps the first instant, and refuses a mistyped one', async () => {
    await using backend = await suite.open()
    const { database } = servicesOf(backend)
    await enqueue(backend)
    const worker = await hands(backend)
    const { pausedAt } = await pauseQueue(database, 'default', { reason: 'one' })
    expect(await pauseQueue(database, 'default', { reason: 'two' })).toEqual({ pausedAt })
    expect(await worker.claim()).toBeNull()
    expect(await listQueues(database)).toMatchObject([
      { name: 'default', available: 1n, executing: 0n, pausedAt, pauseReason: 'two', workers: 1, slots: 2 },
    ])
    expect(await resumeQueue(database, 'default')).toBe(true)
    expect(await resumeQueue(database, 'default')).toBe(false)
    expect(await worker.claim()).not.toBeNull()
    expect(await listQueues(database)).toMatchObject([{ available: 0n, executing: 1n, pausedAt: null }])
    await expect(pauseQueue(database, 'defualt')).rejects.toThrow(/"defualt" is unknown.*known are: default/)
    expect(await pauseQueue(database, 'new', { configured: ['new'] })).toMatchObject({
      pausedAt: expect.any(Date),
    })
  })

  it('tells on one screen what waits for whom', async () => {
    await using backend = await suite.open()
    const { database } = servicesOf(backend)
    await ended(backend, 'discarded')
    await enqueue(backend, `, queue => 'nobody'`)
    await enqueue(backend, ', delay_ms => 60000')
    await backend.sql(`insert into holdfast.parked (job_id, seq, parked_at, priority, attempts, crashes, name, queue, reason)
      values (999, 999, now(), 0, 0, 0, 'newer', 'default', 'unknown name')`)
    const status = await readStatus(database, await schemaStatus(database))
    expect(status).toMatchObject({
      schema: { state: 'current', name: 'holdfast' },
      workers: [{ name: 'hands', isAlive: true, executing: 0 }],
      scheduled: 1n,
      nextDueAt: expect.any(Date),
      discarded: 1n,
      parked: [{ name: 'newer', jobs: 1n, reason: 'unknown name' }],
      unserved: [{ name: 'nobody', available: 1n }],
    })
    await backend.sql(`update holdfast.worker set heartbeat_at = now() - interval '1 hour'`)
    expect((await readStatus(database, status.schema)).workers).toMatchObject([{ isAlive: false }])
  })
})
