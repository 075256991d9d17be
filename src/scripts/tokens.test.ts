import { describe, expect, it } from 'vitest'
import { isComplete } from './is-complete.ts'
import { tokenize } from './tokens.ts'

const kinds = (text: string) => tokenize(text).map((token) => `${token.kind}:${token.text}`)

describe('tokenize', () => {
  it('tells keywords of any letter case from names', () => {
    expect(kinds('LeT Let_ lets `let`')).toEqual(['keyword:let', 'name:Let_', 'name:lets', 'quoted-name:let'])
  })

  it('ends a name at the next back-quote', () => {
    expect(kinds('`a` 1 `b`')).toEqual(['quoted-name:a', 'integer:1', 'quoted-name:b'])
  })

  it('tells a range from a decimal', () => {
    expect(kinds('1..3 1.5..2 a..b')).toEqual([
      'integer:1',
      'operator:..',
      'integer:3',
      'decimal:1.5',
      'operator:..',
      'integer:2',
      'name:a',
      'operator:..',
      'name:b',
    ])
  })

  it('leaves a minus to the parser', () => {
    expect(kinds('a-1')).toEqual(['name:a', 'operator:-', 'integer:1'])
  })

  it('decodes escapes and keeps a backslash before anything else', () => {
    const [token] = tokenize(String.raw`'a\'b\n\t\\ \d \u00e9 \ud83d\ude00'`)
    expect(token).toMatchObject({ kind: 'string', text: "a'b\n\t\\ \\d é 😀" })
  })

  it.each([
    ["'abc", 0, 4],
    ["'abc\nset", 0, 4],
    ['`abc', 0, 4],
    ['@', 0, 1],
    ['0x1f', 0, 4],
    ['1e5', 0, 3],
    ['1a', 0, 2],
    ['.5', 0, 1],
    ['5.', 0, 2],
    ['$', 0, 1],
    ['é', 0, 1],
    ['😀', 0, 2],
    ["'a\0'", 0, 4],
    [String.raw`'\ud800'`, 0, 8],
  ])('marks %j as invalid and goes on behind it', (text, start, end) => {
    const [token, ...rest] = tokenize(`${text} `)
    expect(token).toMatchObject({ kind: 'invalid', start, problem: expect.stringMatching(/\w/) })
    if (!text.startsWith("'abc") && !text.startsWith('`')) expect(token?.end).toBe(end)
    expect(rest.every(({ kind }) => kind !== 'invalid')).toBe(true)
  })

  it('covers all of the text but blanks, whatever the text', () => {
    const text = 'set k "x" # note\r\n\t$ ; `y` \u{1F600} 1.2.3 @p && !'
    let at = 0
    for (const { start, end } of tokenize(text)) {
      expect(text.slice(at, start)).toMatch(/^[ \t\r\n]*$/)
      expect(end).toBeGreaterThan(start)
      at = end
    }
    expect(at).toBe(text.length)
  })

  it('takes long strings, with and without their end', () => {
    const body = '\\n'.repeat(500_000)
    expect(tokenize(`'${body}'`)[0]?.text).toHaveLength(500_000)
    expect(tokenize(`'${body}`)[0]?.kind).toBe('invalid')
  })
})

describe('isComplete', () => {
  it.each(['set k 1', 'if a then b end', 'begin set k 1 commit end', 'return not set', 'return (1)', ''])(
    'takes %j as a whole script',
    (text) => {
      expect(isComplete(text)).toBe(true)
    },
  )

  it.each([
    'begin',
    'if not set then',
    'for i in 1..3 do set k i',
    'return (1 +',
    'set',
    'let x =',
    'return [1,',
  ])('waits for more after %j', (text) => {
    expect(isComplete(text)).toBe(false)
  })

  it.each(["set k 'abc", 'end', 'return )', '$ begin'])('shows the mistake in %j at once', (text) => {
    expect(isComplete(text)).toBe(true)
  })
})
