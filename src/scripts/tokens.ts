import { type Keyword, keywordOf } from './keywords.ts'

export type TokenKind =
  | 'keyword'
  | 'name'
  | 'quoted-name'
  | 'parameter'
  | 'integer'
  | 'decimal'
  | 'string'
  | 'operator'
  | 'separator'
  | 'comment'
  /** What no token can start with, or a token that is malformed or has no end. */
  | 'invalid'

/** A piece of a script. Offsets count UTF-16 units, as those of JavaScript strings do; `end` is behind it. */
export interface Token {
  readonly kind: TokenKind
  readonly start: number
  readonly end: number
  /** The token as it stands, except: a keyword in lower case, a quoted name or string decoded, a parameter without `@`. */
  readonly text: string
  /** Of an invalid token: what is wrong, as a sentence without its end. */
  readonly problem?: string
}

const WORD = /[A-Za-z_][A-Za-z0-9_]*/y
const PARAMETER = /@[A-Za-z0-9_]+/y
const BLANK = /[ \t\r\n]+/y
const COMMENT = /#[^\r\n]*/y
const NUMBER = /[0-9]+(?:\.[0-9]+)?/y
const OPERATOR = /==|!=|<>|<=|>=|&&|\|\||\.\.|[-+*/=!<>()[\],{}]/y
const STRING = /'[^'\\\r\n]*(?:\\[^\r\n][^'\\\r\n]*)*'|"[^"\\\r\n]*(?:\\[^\r\n][^"\\\r\n]*)*"/y
const QUOTED_NAME = /`[^`\r\n]*`/y
const LINE_REST = /[^\r\n]*/y
/** What PostgreSQL cannot keep as text: NUL, and half of a surrogate pair. */
const UNSTORABLE = /[\0\p{Cs}]/u

const INT8_MAX = 9_223_372_036_854_775_807n

/**
 * Cuts `text` into tokens, blanks left out. Never throws: what is wrong becomes tokens of the kind `invalid`, after
 * which it goes on. For colouring; the parser refuses the first invalid one.
 */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  for (;;) {
    at = match(BLANK, text, at)?.end ?? at
    if (at >= text.length) return tokens
    const token = tokenAt(text, at)
    tokens.push(token)
    at = token.end
  }
}

function tokenAt(text: string, start: number): Token {
  const first = text[start] as string
  if (first === '#') return plain('comment', COMMENT, text, start) as Token
  if (first === ';') return { kind: 'separator', start, end: start + 1, text: ';' }
  if (first === "'" || first === '"') return stringAt(text, start, first)
  if (first === '`') return quotedNameAt(text, start)
  if (first === '@') return parameterAt(text, start)
  if (first >= '0' && first <= '9') return numberAt(text, start)
  return wordAt(text, start) ?? plain('operator', OPERATOR, text, start) ?? unknownAt(text, start)
}

function wordAt(text: string, start: number): Token | undefined {
  const found = match(WORD, text, start)
  if (found === undefined) return undefined
  const keyword = keywordOf(found.text)
  return keyword === undefined
    ? { kind: 'name', start, end: found.end, text: found.text }
    : { kind: 'keyword', start, end: found.end, text: keyword }
}

function parameterAt(text: string, start: number): Token {
  const found = match(PARAMETER, text, start)
  if (found === undefined) return invalid(start, start + 1, '@', 'expected the name of a parameter after "@"')
  return { kind: 'parameter', start, end: found.end, text: found.text.slice(1) }
}

function numberAt(text: string, start: number): Token {
  const found = match(NUMBER, text, start) as Match
  const word = match(WORD, text, found.end)
  if (word !== undefined) {
    const whole = text.slice(start, word.end)
    return invalid(start, word.end, whole, `"${shorten(whole)}" is neither a number nor a name`)
  }
  if (text[found.end] === '.' && text[found.end + 1] !== '.')
    return invalid(start, found.end + 1, `${found.text}.`, 'digits must follow the point of a number')
  if (found.text.includes('.')) {
    return Number.isFinite(Number(found.text))
      ? { kind: 'decimal', start, end: found.end, text: found.text }
      : invalid(start, found.end, found.text, 'the number is too large')
  }
  return { kind: 'integer', start, end: found.end, text: found.text }
}

function stringAt(text: string, start: number, quote: string): Token {
  const found = match(STRING, text, start)
  if (found === undefined) return unclosed(text, start, `the string that starts here has no closing ${quote}`)
  const decoded = decodeString(found.text.slice(1, -1))
  if (UNSTORABLE.test(decoded)) return unstorable(found, start)
  return { kind: 'string', start, end: found.end, text: decoded }
}

function quotedNameAt(text: string, start: number): Token {
  const found = match(QUOTED_NAME, text, start)
  if (found === undefined) return unclosed(text, start, 'the name that starts here has no closing `')
  if (UNSTORABLE.test(found.text)) return unstorable(found, start)
  return { kind: 'quoted-name', start, end: found.end, text: found.text.slice(1, -1) }
}

/** A quote without its end, up to the end of the line: the lines after it can be understood again. */
function unclosed(text: string, start: number, problem: string): Token {
  const { end, text: rest } = match(LINE_REST, text, start) as Match
  return invalid(start, end, rest, problem)
}

function unstorable(found: Match, start: number): Token {
  return invalid(
    start,
    found.end,
    found.text,
    'text must not have NUL characters or halves of surrogate pairs',
  )
}

function unknownAt(text: string, start: number): Token {
  const character = String.fromCodePoint(text.codePointAt(start) as number)
  const point = text[start] === '.' ? 'a number starts with a digit, a range is written ".."' : undefined
  return invalid(
    start,
    start + character.length,
    character,
    point ?? `unexpected character ${named(character)}`,
  )
}

function invalid(start: number, end: number, text: string, problem: string): Token {
  return { kind: 'invalid', start, end, text, problem }
}

/** A character as a message can show it: those that cannot be seen, by their number. */
function named(character: string): string {
  if (/^[\p{L}\p{N}\p{P}\p{S}]$/u.test(character)) return `"${character}"`
  const number = (character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')
  return `U+${number}`
}

function shorten(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}...` : text
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' }

/**
 * `\n \r \t \b \f`, `\uXXXX`, and a backslash before a quote or a backslash. A backslash before anything else
 * stays, so that patterns and Windows paths survive.
 */
function decodeString(raw: string): string {
  if (!raw.includes('\\')) return raw
  return raw.replace(/\\(?:u([0-9A-Fa-f]{4})|([\s\S]))/g, (whole, hex: string | undefined, char: string) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
    if (char === '\\' || char === "'" || char === '"' || char === '`') return char
    return ESCAPES[char] ?? whole
  })
}

/** True if the digits of an integer are at most 2^63 - 1; one more where a minus stands before them. */
export function fitsInt8(digits: string, negative: boolean): boolean {
  if (digits.length < 19) return true
  const significant = digits.replace(/^0+/, '')
  return significant.length < 20 && BigInt(significant || '0') <= INT8_MAX + (negative ? 1n : 0n)
}

/** True if `token` is this keyword. */
export function isKeyword(token: Token, keyword: Keyword): boolean {
  return token.kind === 'keyword' && token.text === keyword
}

function plain(kind: TokenKind, pattern: RegExp, text: string, start: number): Token | undefined {
  const found = match(pattern, text, start)
  return found && { kind, start, end: found.end, text: found.text }
}

interface Match {
  readonly text: string
  readonly end: number
}

function match(pattern: RegExp, text: string, at: number): Match | undefined {
  pattern.lastIndex = at
  const found = pattern.exec(text)
  return found === null ? undefined : { text: found[0], end: pattern.lastIndex }
}
