import { type Token, tokenize } from './tokens.ts'

/** What opens a block that `end` closes. */
const OPENERS = new Set(['begin', 'if', 'for'])
/** What cannot stand at the end of a script: more must follow. */
const EXPECTANT = new Set([
  'as',
  'at',
  'bucket',
  'by',
  'cmp',
  'cmprev',
  'do',
  'else',
  'ex',
  'in',
  'let',
  'not',
  'of',
  'prefix',
  'sleep',
  'then',
  'throw',
  'set',
  'eset',
  'get',
  'eget',
  'exists',
  'eexists',
  'delete',
  'del',
  'edelete',
  'edel',
  'extend',
  'eextend',
  'scan',
  'escan',
])

/**
 * False while a script that is typed line by line must go on: a block or bracket is open, or the last word or operator
 * needs something after it. Says nothing about whether the script is right. True as well for a mistake that no further
 * line can mend, such as a quote that the end of the line left open.
 */
export function isComplete(text: string): boolean {
  const tokens = tokenize(text).filter((token) => token.kind !== 'comment')
  let blocks = 0
  let brackets = 0
  for (const token of tokens) {
    if (token.kind === 'invalid') return true
    if (token.kind === 'keyword') {
      if (OPENERS.has(token.text)) blocks += 1
      if (token.text === 'end') blocks -= 1
    }
    if (token.kind === 'operator') {
      if (token.text === '(' || token.text === '[') brackets += 1
      if (token.text === ')' || token.text === ']') brackets -= 1
    }
    if (blocks < 0 || brackets < 0) return true
  }
  return blocks === 0 && brackets === 0 && !needsMore(tokens)
}

function needsMore(tokens: readonly Token[]): boolean {
  const last = tokens.at(-1)
  if (last === undefined) return false
  if (last.kind === 'operator') return last.text !== ')' && last.text !== ']' && last.text !== '}'
  if (last.kind !== 'keyword') return false
  const before = tokens.at(-2)
  const isStatusWord = last.text === 'set' && before?.kind === 'keyword' && before.text === 'not'
  return EXPECTANT.has(last.text) && !isStatusWord
}
