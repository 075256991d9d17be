import { describe, expect, it } from 'vitest'
import { bucketRange, compareKeys, contains, narrow, prefixRange } from './key-range.ts'

describe('ranges of keys', () => {
  it('end where the first text comes that does not start with the prefix', () => {
    expect(prefixRange('ab').high).toBe('ac')
    expect(prefixRange('').high).toBeNull()
    expect(prefixRange('a\u{10ffff}').high).toBe('b')
    expect(prefixRange('\u{10ffff}').high).toBeNull()
    expect(prefixRange('\ud7ff').high).toBe('\ue000')
    expect(prefixRange('\uffff').high).toBe('\u{10000}')
  })

  it('hold exactly what starts with the prefix, in byte order', () => {
    const range = prefixRange('a_')
    expect(['a_', 'a_b', 'a_\u{10ffff}x'].every((key) => contains(range, key))).toBe(true)
    expect(['aXb', 'a', 'a`', 'b'].some((key) => contains(range, key))).toBe(false)
    expect(compareKeys('\uffff', '\u{10000}')).toBeLessThan(0)
  })

  it('count characters, not units, to where a bucket ends', () => {
    expect(bucketRange('\u{10000}')).toEqual({
      low: '\u{10000}/',
      above: false,
      high: '\u{10000}0',
      depth: 2,
    })
  })

  it('narrow to the stricter of two bounds', () => {
    const range = prefixRange('b')
    expect(narrow(range, { start: 'a', end: 'z' })).toMatchObject({ low: 'b', above: false, high: 'c' })
    expect(narrow(range, { start: 'bb', startInclusive: false, end: 'bd' })).toMatchObject({
      low: 'bb',
      above: true,
      high: 'bd',
    })
    expect(narrow(range, { end: 'bd', endInclusive: true }).high).toBe('bd\u0001')
    expect(narrow(prefixRange(''), { end: 'x' }).high).toBe('x')
  })
})
