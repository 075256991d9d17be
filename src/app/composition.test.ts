import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CompositionError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { defineJob } from '../jobs/define-job.ts'
import { compose } from './composition.ts'

const job = (name: string, queue = 'default') =>
  defineJob({ name, queue, input: z.null(), idempotent: true, handler: () => {} })
const base = { name: 'shop', database: 'pglite:memory:' }

describe('a composition', () => {
  it('has the documented defaults', () => {
    expect(compose({ ...base, jobs: [job('a')] })).toMatchObject({
      schema: 'holdfast',
      leaseMs: limits.leaseMs.default,
      maxPollMs: limits.maxPollMs.default,
      shutdownMs: limits.shutdownMs.default,
      shutdownGraceMs: limits.shutdownGraceMs.default,
      queues: new Map([['default', { concurrency: limits.concurrency.default }]]),
    })
  })

  it('lists all its faults at once, each by its name', () => {
    const faulty = () =>
      compose({
        name: '',
        database: base.database,
        jobs: [job('a'), job('a'), job('b', 'nowhere'), {} as never],
        queues: { default: { concurrency: 0 }, ' ': {} },
        schema: 'pg_mine',
        leaseMs: 1,
      })
    expect(faulty).toThrow(CompositionError)
    try {
      faulty()
    } catch (error) {
      const text = (error as CompositionError).faults.join('\n')
      for (const part of [
        'two jobs are named "a"',
        '"nowhere"',
        'jobs[3]',
        'queues.default.concurrency',
        'name',
        'pg_',
        'leaseMs',
      ]) {
        expect(text).toContain(part)
      }
    }
  })

  it('finds jobs and queues by names that every object has', () => {
    const composition = compose({
      ...base,
      jobs: [job('constructor', 'toString')],
      queues: { toString: {} } as never,
    })
    expect([...composition.jobs.keys()]).toEqual(['constructor'])
    expect(composition.jobs.get('hasOwnProperty')).toBeUndefined()
    expect(composition.queues.get('valueOf')).toBeUndefined()
  })
})
