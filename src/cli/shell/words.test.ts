import { describe, expect, it } from 'vitest'
import { closest } from './closest.ts'
import { firstWord, wordsOf } from './words.ts'

describe('the words of a command', () => {
  it.each([
    ['lock jobs/1/lock 30000', ['lock', 'jobs/1/lock', '30000']],
    ['  a\t b  ', ['a', 'b']],
    [`'two words' "it's" \`a b\``, ['two words', "it's", 'a b']],
    [String.raw`"say \"hi\" C:\dir" 'it\'s'`, [String.raw`say "hi" C:\dir`, "it's"]],
    [`pre"fix with"'s blanks'`, ['prefix withs blanks']],
    [`'' ""`, ['', '']],
    [String.raw`C:\dir`, [String.raw`C:\dir`]],
    ['größe 訂單', ['größe', '訂單']],
  ])('of %s', (text, words) => {
    expect(wordsOf(text)).toEqual(words)
  })

  it.each([`'open`, `a "b`, '`c', String.raw`"a\"`])('say of %s that the quote has no end', (text) => {
    expect(() => wordsOf(text)).toThrow('has no end')
  })

  it('begin with the command, in any case of letters', () => {
    expect(firstWord('  Extend-Lock x')).toBe('extend-lock')
    expect(firstWord('help')).toBe('help')
    for (const none of ['', ' ', '@x', '1', 'set(', "'lock'"]) expect(firstWord(none)).toBeUndefined()
  })
})

it('what was mistyped is known by what differs least', () => {
  const words = ['lock', 'locks', 'sequence', 'get', 'set']
  expect(closest('lokc', words)).toBe('lock')
  expect(closest('sequense', words)).toBe('sequence')
  expect(closest('frobnicate', words)).toBeUndefined()
  expect(closest('x', words)).toBeUndefined()
})
