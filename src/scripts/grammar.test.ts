import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../test/chaos/random.ts'
import { ScriptGenerator } from '../../test/support/script-fuzz.ts'
import { functionNames } from './functions.ts'
import { keywords } from './keywords.ts'
import { type TokenKind, tokenize } from './tokens.ts'

interface Rule {
  readonly name?: string
  readonly match?: string
  readonly include?: string
  readonly patterns?: readonly Rule[]
}

const file = new URL('../../grammars/holdfast-script.tmLanguage.json', import.meta.url)
const grammar = JSON.parse(fs.readFileSync(file, 'utf8')) as Rule & {
  readonly repository: Readonly<Record<string, Rule>>
}

/** The rules one after another, with patterns that JavaScript understands: it has no inline flags. */
const rules = rulesOf(grammar).map(({ name, match }) => {
  const isCaseless = match.includes('(?i:')
  return { name, pattern: new RegExp(match.replace('(?i:', '(?:'), isCaseless ? 'iy' : 'y') }
})

function rulesOf(rule: Rule): { readonly name: string; readonly match: string }[] {
  if (rule.include !== undefined) return rulesOf(grammar.repository[rule.include.slice(1)] as Rule)
  if (rule.patterns !== undefined) return rule.patterns.flatMap(rulesOf)
  return [{ name: rule.name as string, match: rule.match as string }]
}

const SCOPES: Readonly<Record<TokenKind, RegExp>> = {
  keyword: /^(keyword\.(control|other)|constant\.language|storage)\./,
  name: /^(variable\.other|support\.function)\./,
  'quoted-name': /^variable\.other\.quoted\./,
  parameter: /^variable\.parameter\./,
  integer: /^constant\.numeric\./,
  decimal: /^constant\.numeric\./,
  string: /^string\./,
  operator: /^keyword\.operator\./,
  separator: /^punctuation\./,
  comment: /^comment\./,
  invalid: /^invalid\./,
}

/** Scopes of a script, as an editor finds them: at each place the first rule that fits. */
function scopesOf(text: string): { readonly start: number; readonly name: string }[] {
  const found: { start: number; name: string }[] = []
  for (let at = 0; at < text.length; ) {
    const rule = rules.find(({ pattern }) => {
      pattern.lastIndex = at
      return pattern.test(text)
    })
    if (rule !== undefined) found.push({ start: at, name: rule.name })
    at = rule === undefined ? at + 1 : rule.pattern.lastIndex
  }
  return found
}

describe('the grammar for editors', () => {
  it('has all keywords and functions, and no others', () => {
    const words = (scope: RegExp) =>
      rules
        .filter(({ name }) => scope.test(name))
        .flatMap(({ pattern }) => pattern.source.match(/[a-z_]+/g) ?? [])
        .filter((word) => word !== 'b')
        .sort()
    expect(words(SCOPES.keyword).filter((word) => word.length > 0)).toEqual([...keywords].sort())
    expect(words(/^support\.function\./).filter((word) => word !== 't')).toEqual([...functionNames].sort())
  })

  it('sees the same tokens as the parser', () => {
    const generator = new ScriptGenerator(seededRandom(1))
    const scripts = Array.from({ length: 300 }, () => generator.script())
    for (const script of [
      ...scripts,
      'set k "a\\"b" # "c"\nlet N = Get `x` ; return abs (1.5) .. @p',
      '"open',
      '1a $ é',
    ]) {
      const tokens = tokenize(script)
      const scopes = scopesOf(script)
      expect(scopes.map(({ start }) => start)).toEqual(tokens.map(({ start }) => start))
      for (const [index, { kind }] of tokens.entries()) expect(scopes[index]?.name).toMatch(SCOPES[kind])
    }
  })
})
