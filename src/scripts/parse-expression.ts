import type { TokenReader } from './reader.ts'
import type { BinaryOperator, Chain, Expression, Key, Read } from './syntax.ts'
import { fitsInt8 } from './tokens.ts'

/** Levels of operators that take two operands, the loosest first. All are evaluated from left to right. */
const RANGE: Readonly<Record<string, BinaryOperator>> = { '..': '..' }
const EQUALITY: Readonly<Record<string, BinaryOperator>> = { '=': '==', '==': '==', '!=': '!=', '<>': '!=' }
const ORDER: Readonly<Record<string, BinaryOperator>> = { '<': '<', '>': '>', '<=': '<=', '>=': '>=' }
const SUM: Readonly<Record<string, BinaryOperator>> = { '+': '+', '-': '-' }
const PRODUCT: Readonly<Record<string, BinaryOperator>> = { '*': '*', '/': '/' }

const READS: Readonly<Record<string, { readonly command: 'get' | 'exists'; readonly ephemeral: boolean }>> = {
  get: { command: 'get', ephemeral: false },
  eget: { command: 'get', ephemeral: true },
  exists: { command: 'exists', ephemeral: false },
  eexists: { command: 'exists', ephemeral: true },
}

/** A whole expression: of a value, a condition, an argument. */
export function parseExpression(reader: TokenReader): Expression {
  return parseChain(reader, RANGE, parseOr)
}

function parseOr(reader: TokenReader): Expression {
  return parseLogic(reader, '||', parseAnd)
}

function parseAnd(reader: TokenReader): Expression {
  return parseLogic(reader, '&&', parseEquality)
}

function parseEquality(reader: TokenReader): Expression {
  return parseChain(reader, EQUALITY, parseOrder)
}

function parseOrder(reader: TokenReader): Expression {
  return parseChain(reader, ORDER, parseSum)
}

function parseSum(reader: TokenReader): Expression {
  return parseChain(reader, SUM, parseProduct)
}

function parseProduct(reader: TokenReader): Expression {
  return parseChain(reader, PRODUCT, parseUnary)
}

function parseChain(
  reader: TokenReader,
  operators: Readonly<Record<string, BinaryOperator>>,
  parseOperand: (reader: TokenReader) => Expression,
): Expression {
  const first = parseOperand(reader)
  const rest: Chain['rest'][number][] = []
  for (;;) {
    const { kind, text } = reader.token
    const operator = kind === 'operator' ? operators[text] : undefined
    if (operator === undefined)
      return rest.length === 0 ? first : { kind: 'chain', first, rest, line: first.line }
    const { line } = reader
    reader.next()
    rest.push({ operator, operand: parseOperand(reader), line })
  }
}

function parseLogic(
  reader: TokenReader,
  operator: '&&' | '||',
  parseOperand: (reader: TokenReader) => Expression,
): Expression {
  const first = parseOperand(reader)
  if (!reader.isOperator(operator)) return first
  const operands = [first]
  const { line } = reader
  while (reader.skipOperator(operator)) operands.push(parseOperand(reader))
  return { kind: 'logic', operator, operands, line }
}

function parseUnary(reader: TokenReader): Expression {
  const { line } = reader
  if (reader.isOperator('-')) {
    reader.next()
    // A minus belongs to the integer behind it: the least one has no positive counterpart.
    if (reader.token.kind === 'integer' && reader.following.text !== '[') return parseInteger(reader, true)
    return { kind: 'unary', operator: '-', operand: reader.nested(() => parseUnary(reader)), line }
  }
  const isStatus = reader.is('not') && reader.following.kind === 'keyword'
  if (isStatus && (reader.following.text === 'set' || reader.following.text === 'found')) {
    reader.next()
    return { kind: 'status', word: reader.next().text as 'set' | 'found', line }
  }
  if (reader.skip('not') || reader.skipOperator('!'))
    return { kind: 'unary', operator: 'not', operand: reader.nested(() => parseUnary(reader)), line }
  return parseIndexed(reader)
}

function parseIndexed(reader: TokenReader): Expression {
  const array = parsePrimary(reader)
  if (!reader.isOperator('[')) return array
  const { line } = reader
  reader.next()
  const index = reader.nested(() => parseExpression(reader))
  reader.expectOperator(']', 'after the index')
  return { kind: 'index', array, index, line }
}

function parsePrimary(reader: TokenReader): Expression {
  const { token, line } = reader
  switch (token.kind) {
    case 'integer':
      return parseInteger(reader, false)
    case 'decimal':
      reader.next()
      return { kind: 'constant', value: Number(token.text), line }
    case 'string':
      reader.next()
      return { kind: 'constant', value: token.text, line }
    case 'parameter':
      reader.next()
      return { kind: 'parameter', name: token.text, line }
    case 'name':
    case 'quoted-name':
      return parseName(reader)
    case 'operator':
      return parseBracketed(reader)
    case 'keyword':
      return parseWord(reader)
    default:
      throw reader.unexpected('a value')
  }
}

function parseInteger(reader: TokenReader, negative: boolean): Expression {
  const { token, line } = reader
  if (!fitsInt8(token.text, negative)) throw reader.error('the integer does not fit into 64 bits')
  reader.next()
  const value = BigInt(token.text)
  return { kind: 'constant', value: negative ? -value : value, line }
}

function parseName(reader: TokenReader): Expression {
  const { line } = reader
  const name = reader.expectName('a value')
  if (!reader.skipOperator('(')) return { kind: 'variable', name, line }
  return { kind: 'call', name, args: parseItems(reader, ')', 'the arguments'), line }
}

function parseBracketed(reader: TokenReader): Expression {
  const { line } = reader
  if (reader.skipOperator('(')) {
    const inner = reader.nested(() => parseExpression(reader))
    reader.expectOperator(')', 'to close the bracket')
    return inner
  }
  if (reader.skipOperator('[')) return { kind: 'array', items: parseItems(reader, ']', 'the items'), line }
  throw reader.unexpected('a value')
}

/** Expressions with commas between them, up to the bracket that closes them. */
function parseItems(reader: TokenReader, closing: string, what: string): readonly Expression[] {
  const items: Expression[] = []
  if (reader.skipOperator(closing)) return items
  do items.push(reader.nested(() => parseExpression(reader)))
  while (reader.skipOperator(','))
  reader.expectOperator(closing, `or "," after ${what}`)
  return items
}

function parseWord(reader: TokenReader): Expression {
  const { token, line } = reader
  switch (token.text) {
    case 'true':
    case 'false':
      reader.next()
      return { kind: 'constant', value: token.text === 'true', line }
    case 'null':
      reader.next()
      return { kind: 'constant', value: null, line }
    default:
      if (startsRead(reader)) return parseRead(reader)
      throw reader.unexpected('a value')
  }
}

export function startsRead(reader: TokenReader): boolean {
  const { kind, text } = reader.token
  return kind === 'keyword' && (READS[text] !== undefined || text === 'scan' || text === 'escan')
}

/** True if a value can start at the next token: tells a bare `return` from one with a value. */
export function startsExpression(reader: TokenReader): boolean {
  const { kind, text } = reader.token
  switch (kind) {
    case 'operator':
      return ['(', '[', '-', '!'].includes(text)
    case 'keyword':
      return ['true', 'false', 'null', 'not'].includes(text) || startsRead(reader)
    case 'separator':
      return false
    default:
      return true
  }
}

/** A read, as a statement or inside an expression. */
export function parseRead(reader: TokenReader): Read {
  const { line } = reader
  const { text } = reader.next()
  const plain = READS[text]
  if (plain === undefined) {
    reader.expect('by', `after "${text}"`)
    reader.expect('prefix', 'after "by"')
    const listing = { kind: 'read', command: 'prefix', ephemeral: text === 'escan', line } as const
    return { ...listing, key: parseKey(reader, 'a prefix'), ...parseAsOf(reader) }
  }
  const { command, ephemeral } = plain
  if (command === 'get' && reader.skip('by')) {
    reader.expect('bucket', 'after "by"')
    const listing = { kind: 'read', command: 'bucket', ephemeral, line } as const
    return { ...listing, key: parseKey(reader, 'a bucket'), ...parseAsOf(reader) }
  }
  const key = parseKey(reader, 'a key')
  const read = { kind: 'read', command, ephemeral, key, line } as const
  // Sums, and not whole expressions: `get a at 0 == b` compares what was read.
  if (reader.skip('at')) return { ...read, at: reader.nested(() => parseSum(reader)) }
  return { ...read, ...parseAsOf(reader) }
}

function parseAsOf(reader: TokenReader): { readonly asOf?: Expression } {
  if (!reader.skip('as')) return {}
  reader.expect('of', 'after "as"')
  return { asOf: reader.nested(() => parseSum(reader)) }
}

/** A bare name is the key itself, never a variable. */
export function parseKey(reader: TokenReader, what: string): Key {
  const { token, line } = reader
  switch (token.kind) {
    case 'name':
    case 'quoted-name':
    case 'string':
    case 'parameter':
      reader.next()
      return { text: token.text, isParameter: token.kind === 'parameter', line }
    default:
      throw reader.unexpected(what)
  }
}
