import { describe, expect, it } from 'vitest'
import { InvalidArgumentError } from '../base/errors.ts'
import {
  checkIdempotencyKey,
  checkListCursor,
  checkPrefix,
  checkSequenceName,
  cursorAfter,
} from './checks.ts'

describe('the name of a sequence', () => {
  it('is kept without its outer blanks', () => {
    expect(checkSequenceName('  invoices of 2026 ')).toBe('invoices of 2026')
    expect(checkSequenceName('x'.repeat(1024))).toHaveLength(1024)
  })

  it.each(['', ' ', '\u3000', 'a\nb', '\u0000', '\ud83d', 'x'.repeat(1025), null, undefined, 5, {}])(
    'is not %j',
    (name) => {
      expect(() => checkSequenceName(name)).toThrow(InvalidArgumentError)
    },
  )
})

describe('an idempotency key', () => {
  it('is kept without its outer blanks, and none if nothing else is there', () => {
    expect(checkIdempotencyKey('\torder 7 \n')).toBe('order 7')
    for (const none of [undefined, null, '', ' ', '\n\u00a0']) expect(checkIdempotencyKey(none)).toBeNull()
  })

  it.each(['a\nb', 'x'.repeat(1025), 'é'.repeat(513), 5, {}, true])('is not %j', (key) => {
    expect(() => checkIdempotencyKey(key)).toThrow(InvalidArgumentError)
  })
})

describe('a list', () => {
  it('goes on by the cursor that it gave, and by no other', () => {
    for (const name of ['a', 'orders/ü 🚚', '-']) expect(checkListCursor(cursorAfter(name))).toBe(name)
    expect(checkListCursor(undefined)).toBe('')
    for (const other of ['', 'a', '!', 'AA', cursorAfter('x\0y'), 5, null])
      expect(() => checkListCursor(other), JSON.stringify(other)).toThrow(InvalidArgumentError)
  })

  it('takes any beginning of a name, and none', () => {
    expect(checkPrefix(undefined)).toBe('')
    expect(checkPrefix('')).toBe('')
    expect(checkPrefix('or%_')).toBe('or%_')
    for (const bad of ['\0', 5]) expect(() => checkPrefix(bad)).toThrow(InvalidArgumentError)
  })
})
