import { describe, expect, it } from 'vitest'
import {
  checkInstant,
  checkInt8,
  checkKey,
  checkName,
  checkNumber,
  checkOneOf,
  checkSchemaName,
  INT8,
} from './check.ts'
import { InvalidArgumentError } from './errors.ts'
import { limits } from './limits.ts'

function fault(check: () => unknown): InvalidArgumentError {
  try {
    check()
  } catch (error) {
    if (error instanceof InvalidArgumentError) return error
    throw error
  }
  throw new Error('expected a refusal')
}

describe('numbers', () => {
  it('takes the ends of the range and the default', () => {
    expect(checkNumber('priority', 0, limits.priority)).toBe(0)
    expect(checkNumber('priority', 9, limits.priority)).toBe(9)
    expect(checkNumber('maxAttempts', undefined, limits.maxAttempts)).toBe(20)
    expect(checkNumber('timeoutMs', undefined, limits.timeoutMs)).toBeUndefined()
    expect(checkNumber('backoff.factor', 1.5, limits.backoffFactor)).toBe(1.5)
  })

  it.each([Number.NaN, Infinity, -Infinity, 1.5, -1, 10, '5', 5n, null, {}, new Date(5), [5]])(
    'refuses %s and names the field',
    (value) => {
      expect(fault(() => checkNumber('priority', value, limits.priority))).toMatchObject({
        field: 'priority',
        code: 'INVALID_ARGUMENT',
        changed: 'nothing',
      })
    },
  )

  it('turns minus zero into zero', () => {
    expect(Object.is(checkNumber('priority', -0, limits.priority), 0)).toBe(true)
  })

  it('has a default within each range', () => {
    for (const [name, limit] of Object.entries(limits)) {
      expect(() => checkNumber(name, limit.default, limit)).not.toThrow()
      expect(limit.min).toBeLessThan(limit.max)
    }
  })
})

describe('64-bit numbers', () => {
  it('are bigints, to both ends, or numbers that are exact', () => {
    expect(checkInt8('max', INT8.max)).toBe(9223372036854775807n)
    expect(checkInt8('max', INT8.min)).toBe(-9223372036854775808n)
    expect(checkInt8('max', Number.MAX_SAFE_INTEGER)).toBe(9007199254740991n)
    expect(checkInt8('max', -0)).toBe(0n)
  })

  it.each([INT8.max + 1n, INT8.min - 1n, 2 ** 53, 1.5, Number.NaN, Infinity, '5', null, undefined, true, {}])(
    'refuses %s',
    (value) => {
      expect(fault(() => checkInt8('max', value)).field).toBe('max')
    },
  )

  it('keeps to a narrower range', () => {
    const range = { min: 1n, max: 3n }
    expect(checkInt8('count', 3, range)).toBe(3n)
    expect(fault(() => checkInt8('count', 0, range)).problem).toBe('must be from 1 to 3, not 0')
    expect(fault(() => checkInt8('count', 4n, range)).problem).toBe('must be from 1 to 3, not 4')
  })
})

describe('names and keys', () => {
  it('keeps case, blanks and any script', () => {
    expect(checkName('name', 'Größe "x" 訂單 🚚')).toBe('Größe "x" 訂單 🚚')
  })

  it('counts bytes, not characters', () => {
    expect(checkName('name', 'é'.repeat(127))).toHaveLength(127)
    expect(fault(() => checkName('name', 'é'.repeat(128))).problem).toContain('256')
    expect(checkKey('uniqueKey', 'k'.repeat(1024))).toHaveLength(1024)
    fault(() => checkKey('uniqueKey', 'k'.repeat(1025)))
  })

  it.each(['', ' ', '\t', 'a\nb', 'a\u0000', 'a\u007f', 'a\u0085', 'a\u2028b', '\ud83d', 'a\udc00'])(
    'refuses %j',
    (value) => {
      expect(fault(() => checkName('name', value)).field).toBe('name')
      expect(fault(() => checkKey('uniqueKey', value)).field).toBe('uniqueKey')
    },
  )

  it('takes undefined and null for no key, and nothing else', () => {
    expect(checkKey('uniqueKey', undefined)).toBeUndefined()
    expect(checkKey('uniqueKey', null)).toBeUndefined()
    for (const value of [0, false, {}, Symbol('k'), 5n]) fault(() => checkKey('uniqueKey', value))
  })

  it('never repeats the value', () => {
    expect(fault(() => checkName('name', 'S3cret\n')).message).not.toContain('S3cret')
  })
})

describe('instants', () => {
  it('takes valid dates, old ones too', () => {
    const date = new Date('0001-01-01T00:00:00.001Z')
    expect(checkInstant('runAt', date)).toBe(date)
    expect(checkInstant('runAt', new Date('9999-12-31T23:59:59.999Z'))).toBeInstanceOf(Date)
  })

  it.each([new Date(Number.NaN), new Date(8.64e15), new Date(-8.64e15), 0, '2026-01-01', null])(
    'refuses %s',
    (value) => {
      expect(fault(() => checkInstant('runAt', value)).field).toBe('runAt')
    },
  )
})

describe('schema names and choices', () => {
  it('takes what PostgreSQL keeps whole', () => {
    expect(checkSchemaName('schema', 'My Jobs "2"')).toBe('My Jobs "2"')
    expect(checkSchemaName('schema', 's'.repeat(63))).toHaveLength(63)
  })

  it.each(['pg_jobs', 'a$b', 's'.repeat(64), '', 'a\nb'])('refuses %j', (value) => {
    expect(fault(() => checkSchemaName('schema', value)).field).toBe('schema')
  })

  it('lists the choices', () => {
    expect(checkOneOf('onConflict', 'return', ['return', 'throw'])).toBe('return')
    expect(fault(() => checkOneOf('onConflict', 'toString', ['return', 'throw'])).problem).toContain(
      'return, throw',
    )
  })
})
