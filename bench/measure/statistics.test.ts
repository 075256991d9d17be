import { expect, it } from 'vitest'
import { median, percentile } from './statistics.ts'

it.each([
  [[3, 1, 2], 2],
  [[4, 1, 2, 3], 2.5],
  [[7], 7],
  [[Number.NaN, 5, 1, 3], 3],
  [[], Number.NaN],
])('the median of %j is %d', (values, expected) => {
  expect(median(values)).toBe(expected)
})

it('a percentile is a value that was measured: the first that so many are not above', () => {
  const hundred = Array.from({ length: 100 }, (_, n) => 100 - n)
  expect([1, 99, 100].map((percent) => percentile(hundred, percent))).toEqual([1, 99, 100])
  expect(percentile([1, 2, 3], 99)).toBe(3)
  expect(percentile([1, 2, 3], 0)).toBe(1)
})
