import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { InvalidArgumentError } from '../base/errors.ts'
import { type ContractFacts, contractOf } from './contract.ts'
import { defineJob } from './define-job.ts'
import { isTerminal, jobStates, terminalStates } from './state.ts'
import { validate } from './validate.ts'

const base = { name: 'x', idempotent: true, handler: () => {} } as const

describe('a definition', () => {
  it('has the documented defaults, and is frozen', () => {
    const job = defineJob({ ...base, input: z.null() })
    expect(job).toMatchObject({ queue: 'default', maxAttempts: 20, priority: 0, abortGraceMs: 5000 })
    expect([job.timeoutMs, job.retry, job.result]).toEqual([undefined, undefined, undefined])
    expect([job.effects, job.uses]).toEqual([[], {}])
    expect(Object.isFrozen(job)).toBe(true)
  })

  it.each([
    ['zod', z.object({ a: z.string() })],
    ['valibot', v.object({ a: v.string() })],
    ['arktype', type({ a: 'string' })],
  ])('takes a schema of %s', (_, input) => {
    const job = defineJob({ ...base, input: input as StandardSchemaV1<{ a: string }> })
    expect(validate(job.input, { a: 'x' })).toMatchObject({ value: { a: 'x' } })
    expect(validate(job.input, { a: 1 })).toMatchObject({
      issues: [{ path: 'a', message: expect.any(String) }],
    })
  })

  it.each([undefined, null, {}, { '~standard': { version: 2 } }, 'string', () => {}])(
    'refuses %j in place of a schema',
    (input) => {
      expect(() => defineJob({ ...base, input: input as never })).toThrow(InvalidArgumentError)
      expect(() => defineJob({ ...base, input: z.null(), result: input ?? null } as never)).toThrow(
        InvalidArgumentError,
      )
    },
  )

  it('refuses a handler that is none, and options that are none', () => {
    expect(() => defineJob({ ...base, input: z.null(), handler: undefined as never })).toThrow(
      expect.objectContaining({ field: 'handler' }),
    )
  })
})

describe('a contract', () => {
  const one = z.object({ a: z.string() })
  const facts: ContractFacts = {
    name: 'x',
    queue: 'q',
    input: one,
    result: undefined,
    effects: ['send:a', 'write:b'],
  }
  const contract = (changed: Partial<ContractFacts> = {}) => contractOf({ ...facts, ...changed })

  it('is the same for the same declaration, made twice', () => {
    expect(contract({ input: z.object({ a: z.string() }) })).toBe(contract())
    expect(contract({ effects: ['write:b', 'send:a'] })).toBe(contract())
    expect(contract({ result: one })).toBe(contract({ result: z.object({ a: z.string() }) }))
    expect(contract()).toMatch(/^[0-9a-f]{16}$/)
  })

  it.each<[string, Partial<ContractFacts>]>([
    ['name', { name: 'y' }],
    ['queue', { queue: 'x' }],
    ['member', { input: z.object({ b: z.string() }) }],
    ['type of a member', { input: z.object({ a: z.number() }) }],
    ['constraint', { input: z.object({ a: z.string().max(5) }) }],
    ['vendor', { input: v.object({ a: v.string() }) }],
    ['result', { result: one }],
    ['effect', { effects: ['send:a'] }],
  ])('differs with another %s', (_, changed) => {
    expect(contract(changed)).not.toBe(contract())
  })

  it('differs with another shape of the result, and is not fooled by input and result changing places', () => {
    const [text, number] = [z.string(), z.number()]
    expect(contract({ result: text })).not.toBe(contract({ result: number }))
    expect(contract({ input: text, result: number })).not.toBe(contract({ input: number, result: text }))
  })

  it('ends for a schema that contains itself', () => {
    const tree: z.ZodType = z.lazy(() => z.object({ children: z.array(tree) }))
    expect(contract({ input: tree })).toMatch(/^[0-9a-f]{16}$/)
    const cyclic = { '~standard': one['~standard'], self: {} as object }
    cyclic.self = cyclic
    expect(contract({ input: cyclic })).toMatch(/^[0-9a-f]{16}$/)
  })
})

describe('a schema that misbehaves', () => {
  const schema = (answer: () => unknown): StandardSchemaV1 => ({
    '~standard': { version: 1, vendor: 'test', validate: answer as never },
  })

  it('is an issue when it throws or rejects, whatever', async () => {
    const thrower = schema(() => {
      throw new Error('mine')
    })
    expect(validate(thrower, 1)).toEqual({ issues: [{ path: '', message: 'mine' }] })
    expect(
      await validate(
        schema(() => Promise.reject(new Error('late'))),
        1,
      ),
    ).toEqual({ issues: [{ path: '', message: 'late' }] })
  })

  it('may answer later', async () => {
    expect(
      await validate(
        schema(async () => ({ value: 5 })),
        1,
      ),
    ).toEqual({ value: 5, issues: undefined })
  })

  it('names a path of members and places', () => {
    const issues = [{ message: 'm', path: ['lines', 0, { key: 'sku' }] }]
    expect(
      validate(
        schema(() => ({ issues })),
        1,
      ),
    ).toEqual({ issues: [{ path: 'lines.0.sku', message: 'm' }] })
  })
})

describe('the states', () => {
  it('are left by themselves unless they are terminal', () => {
    expect(jobStates.filter(isTerminal).toSorted()).toEqual([...terminalStates].toSorted())
  })
})
