import { functionNames } from './functions.ts'
import { type TokenKind, tokenize } from './tokens.ts'

/** What a piece of a script looks like. */
export type ScriptStyle =
  | 'keyword'
  | 'constant'
  | 'function'
  | 'name'
  | 'parameter'
  | 'number'
  | 'string'
  | 'operator'
  | 'comment'
  | 'invalid'
  | 'blank'

/** A piece of a script with its looks. */
export interface ScriptPiece {
  readonly text: string
  readonly style: ScriptStyle
}

const STYLES: Readonly<Record<TokenKind, ScriptStyle>> = {
  keyword: 'keyword',
  name: 'name',
  'quoted-name': 'name',
  parameter: 'parameter',
  integer: 'number',
  decimal: 'number',
  string: 'string',
  operator: 'operator',
  separator: 'operator',
  comment: 'comment',
  invalid: 'invalid',
}

const CONSTANTS = new Set(['true', 'false', 'null'])

/** `text` in pieces that together are `text`, for colouring. Never throws: what is not valid has a style of its own. */
export function highlight(text: string): ScriptPiece[] {
  const pieces: ScriptPiece[] = []
  let at = 0
  for (const token of tokenize(text)) {
    if (token.start > at) pieces.push({ text: text.slice(at, token.start), style: 'blank' })
    at = token.end
    let style = STYLES[token.kind]
    if (token.kind === 'keyword' && CONSTANTS.has(token.text)) style = 'constant'
    if (token.kind === 'name' && functionNames.has(token.text) && /^[ \t]*\(/.test(text.slice(at, at + 8)))
      style = 'function'
    pieces.push({ text: text.slice(token.start, token.end), style })
  }
  if (at < text.length) pieces.push({ text: text.slice(at), style: 'blank' })
  return pieces
}
