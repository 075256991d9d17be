import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CompositionError } from '../base/errors.ts'
import type { EffectName } from '../effects/effect-name.ts'
import { defineJob } from '../jobs/define-job.ts'
import { defineProducer } from '../producers/define-producer.ts'
import { resource, type Uses } from '../resources/resource.ts'
import type { AppOptions } from './app-options.ts'
import { compose } from './composition.ts'

const mailer = resource({ name: 'mailer', provides: ['send:email'], create: () => 'real' })
const erp = resource({ name: 'erp', provides: ['call:erp', 'read:erp.cache'], create: () => 'real' })

function job(name: string, effects: readonly EffectName[] = [], uses: Uses = {}) {
  return defineJob({ name, input: z.null(), idempotent: true, effects, uses, handler: () => {} })
}

function producer(name: string, ...effects: readonly `enqueue:${string}`[]) {
  return defineProducer({ name, input: z.null(), effects, run: () => {} })
}

function faultsOf(options: Partial<AppOptions>): readonly string[] {
  try {
    compose({ name: 'shop', database: 'pglite:memory:', jobs: [], ...options })
    return []
  } catch (error) {
    return (error as CompositionError).faults
  }
}

describe('the composition of effects', () => {
  it('accepts what is provided, enqueued and used as declared', () => {
    const jobs = [
      job('send', ['send:email', 'enqueue:send', 'write:log'], { mailer }),
      job('sync', ['read:erp.cache'], { erp }),
    ]
    const producers = [producer('confirm', 'enqueue:send', 'enqueue:sync')]
    expect(faultsOf({ jobs, producers })).toEqual([])
  })

  it('names job and effect for an effect outside that nobody provides', () => {
    expect(faultsOf({ jobs: [job('send', ['send:email', 'store:files'], { mailer })] })).toEqual([
      'job "send" declares "store:files", which no resource in its "uses" provides; add one that does',
    ])
    expect(faultsOf({ jobs: [job('send', ['call:erp'])] })).toEqual([
      expect.stringContaining('job "send" declares "call:erp"'),
    ])
  })

  it('lets a job use only what provides an effect that it declares', () => {
    expect(faultsOf({ jobs: [job('send', ['send:email'], { mailer, erp })] })).toEqual([
      'job "send" uses resource "erp" and declares none of the effects that it provides (call:erp, read:erp.cache)',
    ])
  })

  it('names both ends of an effect that enqueues an unknown job', () => {
    const faults = faultsOf({
      jobs: [job('send', ['enqueue:gone'])],
      producers: [producer('confirm', 'enqueue:sent', 'enqueue:constructor')],
    })
    expect(faults).toEqual([
      'job "send" declares "enqueue:gone", and there is no job "gone" among "jobs"',
      'producer "confirm" declares "enqueue:sent", and there is no job "sent" among "jobs"',
      'producer "confirm" declares "enqueue:constructor", and there is no job "constructor" among "jobs"',
    ])
  })

  it('takes each name of a producer and of a resource once, and only what was defined', () => {
    const double = resource({ name: 'mailer', provides: ['send:email'], create: () => 'other' })
    const faults = faultsOf({
      jobs: [job('a', ['send:email'], { mailer }), job('b', ['send:email'], { mailer: double })],
      producers: [producer('confirm'), producer('confirm'), { name: 'plain' } as never, null as never],
    })
    expect(faults).toEqual([
      'two producers are named "confirm"',
      'producers[2] is not a producer; make it with defineProducer',
      'producers[3] is not a producer; make it with defineProducer',
      'two resources are named "mailer"',
    ])
    expect(faultsOf({ producers: {} as never })).toEqual([
      'producers must be an array of what defineProducer gives',
    ])
  })

  it('lists its faults together with all others', () => {
    expect(() =>
      compose({
        name: '',
        database: 'pglite:memory:',
        jobs: [job('send', ['send:email'])],
        producers: [producer('confirm', 'enqueue:gone')],
        leaseMs: 1,
      }),
    ).toThrow(CompositionError)
    expect(
      faultsOf({
        name: '',
        jobs: [job('send', ['send:email'])],
        producers: [producer('c', 'enqueue:gone')],
        leaseMs: 1,
      }),
    ).toHaveLength(4)
  })
})

describe('a replaced resource', () => {
  const jobs = [job('send', ['send:email'], { post: mailer })]
  const request = { tenant: '', signal: new AbortController().signal }
  const built = (resources: NonNullable<AppOptions['resources']>) =>
    compose({ name: 'shop', database: 'pglite:memory:', jobs, resources })
      .resources.get('mailer')
      ?.create(request)

  it('is built in place of the one of that name, by another resource or by a function', () => {
    const fake = resource({ name: 'fake', provides: ['send:email'], create: () => 'fake' })
    expect(built({})).toBe('real')
    expect(built({ mailer: fake })).toBe('fake')
    expect(built({ mailer: { create: () => 'function' } })).toBe('function')
  })

  it('has to provide what is needed, when it says by itself what it provides', () => {
    expect(faultsOf({ jobs, resources: { mailer: erp } })).toEqual([
      expect.stringContaining('job "send" uses resource "mailer" and declares none'),
      expect.stringContaining('job "send" declares "send:email"'),
    ])
  })

  it('is refused when no job uses it, or when it cannot be built', () => {
    expect(faultsOf({ jobs, resources: { post: { create: () => 1 } } })).toEqual([
      'resources names "post", which no job uses; used are: "mailer"',
    ])
    for (const fault of [null, {}, { create: 'x' }])
      expect(faultsOf({ jobs, resources: { mailer: fault as never } })).toEqual([
        'resources.mailer: create must be a function for resource "mailer"',
      ])
  })
})
