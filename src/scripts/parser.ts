import { parseExpression, parseKey, parseRead, startsExpression, startsRead } from './parse-expression.ts'
import { TokenReader } from './reader.ts'
import type { BeginOption, Constant, SetFlags, SetStatement, Statement, Write } from './syntax.ts'

/** Words that end a list of statements. */
const CLOSING = new Set(['end', 'else'])

/** A script, parsed. */
export interface Script {
  /** One at least. */
  readonly statements: readonly Statement[]
  /** True if `not found` may be asked somewhere: then every answer may be seen. */
  readonly asksFound: boolean
}

/** @throws {ScriptSyntaxError} With the place of the first mistake. */
export function parseScript(source: string): Script {
  const reader = new TokenReader(source)
  const statements = parseStatements(reader, 'a statement')
  if (!reader.atEnd) throw reader.unexpected('a statement')
  return { statements, asksFound: reader.has('found') }
}

function parseStatements(reader: TokenReader, wanted: string): readonly Statement[] {
  const statements: Statement[] = []
  for (;;) {
    while (!reader.atEnd && reader.token.kind === 'separator') reader.next()
    const { kind, text } = reader.token
    if (reader.atEnd || (kind === 'keyword' && CLOSING.has(text))) break
    statements.push(parseStatement(reader))
  }
  if (statements.length === 0) throw reader.unexpected(wanted)
  return statements
}

function parseStatement(reader: TokenReader): Statement {
  const { line, token } = reader
  const write = parseWrite(reader)
  if (write !== undefined) return write
  if (startsRead(reader)) return parseRead(reader)
  switch (token.kind === 'keyword' ? token.text : '') {
    case 'let':
      return parseLet(reader)
    case 'if':
      return reader.nested(() => parseIf(reader))
    case 'for':
      return reader.nested(() => parseFor(reader))
    case 'begin':
      return reader.nested(() => parseBegin(reader))
    case 'commit':
    case 'rollback':
      reader.next()
      return { kind: token.text as 'commit' | 'rollback', line }
    case 'return':
      reader.next()
      return startsExpression(reader)
        ? { kind: 'return', value: parseExpression(reader), line }
        : { kind: 'return', line }
    case 'sleep':
      reader.next()
      return { kind: 'sleep', duration: parseExpression(reader), line }
    case 'throw':
      reader.next()
      return { kind: 'throw', value: parseExpression(reader), line }
    default:
      throw reader.unexpected('a statement')
  }
}

/** A write, if one is next. */
function parseWrite(reader: TokenReader): Write | undefined {
  const { token, line } = reader
  if (token.kind !== 'keyword') return undefined
  const ephemeral = token.text.startsWith('e') && token.text !== 'extend'
  switch (token.text) {
    case 'set':
    case 'eset':
      reader.next()
      return parseSet(reader, ephemeral, line)
    case 'del':
    case 'delete':
    case 'edel':
    case 'edelete':
      reader.next()
      return { kind: 'delete', ephemeral, key: parseKey(reader, 'a key'), line }
    case 'extend':
    case 'eextend':
      reader.next()
      return { kind: 'extend', ephemeral, key: parseKey(reader, 'a key'), ttl: parseExpression(reader), line }
    default:
      return undefined
  }
}

function parseSet(reader: TokenReader, ephemeral: boolean, line: number): SetStatement {
  const key = parseKey(reader, 'a key')
  const value = parseExpression(reader)
  let flags: SetFlags = { ifAbsent: false, ifPresent: false, norev: false }
  for (;;) {
    if (reader.skip('nx')) flags = { ...flags, ifAbsent: true }
    else if (reader.skip('xx')) flags = { ...flags, ifPresent: true }
    else if (reader.skip('norev')) flags = { ...flags, norev: true }
    else if (reader.skip('ex')) flags = { ...flags, ttl: parseExpression(reader) }
    else if (reader.skip('cmp')) flags = { ...flags, ifValue: parseExpression(reader) }
    else if (reader.skip('cmprev')) flags = { ...flags, ifRevision: parseExpression(reader) }
    else return { kind: 'set', ephemeral, key, value, ...flags, line }
  }
}

function parseLet(reader: TokenReader): Statement {
  const { line } = reader
  reader.next()
  const name = reader.expectName('the name of a variable')
  reader.expectOperator('=', 'after the name')
  return { kind: 'let', name, value: parseWrite(reader) ?? parseExpression(reader), line }
}

function parseIf(reader: TokenReader): Statement {
  const { line } = reader
  reader.next()
  const condition = parseExpression(reader)
  reader.expect('then', 'after the condition')
  const body = parseStatements(reader, 'a statement after "then"')
  const otherwise = reader.skip('else') ? parseStatements(reader, 'a statement after "else"') : []
  reader.expect('end', 'to close "if"')
  return { kind: 'if', condition, body, otherwise, line }
}

function parseFor(reader: TokenReader): Statement {
  const { line } = reader
  reader.next()
  const name = reader.expectName('the name of a variable')
  reader.expect('in', 'after the name')
  const items = parseExpression(reader)
  reader.expect('do', 'after the items')
  const body = parseStatements(reader, 'a statement after "do"')
  reader.expect('end', 'to close "for"')
  return { kind: 'for', name, items, body, line }
}

function parseBegin(reader: TokenReader): Statement {
  const { line } = reader
  reader.next()
  const options: BeginOption[] = []
  if (reader.skipOperator('(')) {
    do options.push(parseOption(reader))
    while (reader.skipOperator(','))
    reader.expectOperator(')', 'or "," after the option')
  }
  const body = parseStatements(reader, 'a statement after "begin"')
  reader.expect('end', 'to close "begin"')
  return { kind: 'begin', options, body, line }
}

function parseOption(reader: TokenReader): BeginOption {
  const { line } = reader
  const name = reader.expectName('the name of an option')
  reader.expectOperator('=', 'after the name of the option')
  return { name, value: parseOptionValue(reader), line }
}

function parseOptionValue(reader: TokenReader): Constant | undefined {
  const { kind, text } = reader.token
  if (kind === 'name' || kind === 'quoted-name') {
    reader.next()
    return text
  }
  if (kind === 'parameter') {
    reader.next()
    return undefined
  }
  const value = parseExpression(reader)
  if (value.kind !== 'constant') throw reader.error('the value of an option is a word, a number or a string')
  return value.value
}
