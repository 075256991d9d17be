import { describe, expect, it } from 'vitest'
import { excerptOf, placeOf } from './place.ts'

describe('placeOf', () => {
  it.each([
    ['abc', 0, 1, 1],
    ['abc', 2, 1, 3],
    ['a\nb', 2, 2, 1],
    ['a\r\nb', 3, 2, 1],
    ['a\rb', 2, 1, 3],
    ['\t$', 1, 1, 2],
    ['😀é$', 3, 1, 3],
    ['\n\n\n$', 3, 4, 1],
  ])('%j at %i is line %i, column %i', (text, offset, line, column) => {
    expect(placeOf(text, offset)).toEqual({ line, column })
  })
})

describe('excerptOf', () => {
  it('shows the line alone, whatever its end, with tabs kept below tabs', () => {
    expect(excerptOf('a\r\n\tset $\r\nb', 8)).toBe('  \tset $\n  \t    ^')
  })

  it('cuts a long line around the place, not through a character', () => {
    const shown = excerptOf(`${'😀'.repeat(200)}$${'x'.repeat(200)}`, 400)
    expect(shown.split('\n')[0]).toBe(`  ...${'😀'.repeat(30)}$${'x'.repeat(59)}...`)
    expect(shown.split('\n')[1]).toBe(`  ${' '.repeat(33)}^`)
  })

  it('shows no control characters, which would move the cursor', () => {
    expect(excerptOf('a\u001b[2J$', 5)).toBe('  a\uFFFD[2J$\n       ^')
  })

  it('shows something for an empty script', () => {
    expect(excerptOf('', 0)).toBe('  \n  ^')
    expect(excerptOf('\n ', 0)).toBe('  \n  ^')
  })
})
