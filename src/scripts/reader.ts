import { limits } from '../base/limits.ts'
import { ScriptSyntaxError } from './errors.ts'
import type { Keyword } from './keywords.ts'
import { excerptOf, placeOf } from './place.ts'
import { isKeyword, type Token, tokenize } from './tokens.ts'

/** Stands for the end of the script. */
const END: Token = { kind: 'separator', start: -1, end: -1, text: '' }

/** Walks over the tokens of a script. Where it throws, the error names the place. */
export class TokenReader {
  readonly #source: string
  readonly #tokens: readonly Token[]
  /** Line of each token. */
  readonly #lines: Int32Array
  #at = 0
  #depth = 0

  /** @throws {ScriptSyntaxError} A character or token that the language does not have. */
  constructor(source: string) {
    this.#source = source
    this.#tokens = tokenize(source).filter(({ kind }) => kind !== 'comment')
    const invalid = this.#tokens.find(({ kind }) => kind === 'invalid')
    if (invalid !== undefined) throw this.#error(invalid, invalid.problem as string)
    this.#lines = linesOf(source, this.#tokens)
  }

  get token(): Token {
    return this.#tokens[this.#at] ?? END
  }

  get following(): Token {
    return this.#tokens[this.#at + 1] ?? END
  }

  get atEnd(): boolean {
    return this.#at >= this.#tokens.length
  }

  /** Line of the token; behind the last one, that of the last. */
  get line(): number {
    return this.#lines[Math.min(this.#at, this.#lines.length - 1)] ?? 1
  }

  /** True if the keyword is anywhere in the script. */
  has(keyword: Keyword): boolean {
    return this.#tokens.some((token) => isKeyword(token, keyword))
  }

  next(): Token {
    const { token } = this
    this.#at += 1
    return token
  }

  is(keyword: Keyword): boolean {
    return isKeyword(this.token, keyword)
  }

  isOperator(...operators: readonly string[]): boolean {
    const { kind, text } = this.token
    return kind === 'operator' && operators.includes(text)
  }

  /** Steps over `keyword` if it is next. */
  skip(keyword: Keyword): boolean {
    if (!this.is(keyword)) return false
    this.#at += 1
    return true
  }

  skipOperator(operator: string): boolean {
    if (!this.isOperator(operator)) return false
    this.#at += 1
    return true
  }

  expect(keyword: Keyword, where: string): void {
    if (!this.skip(keyword)) throw this.unexpected(`"${keyword}" ${where}`)
  }

  expectOperator(operator: string, where: string): void {
    if (!this.skipOperator(operator)) throw this.unexpected(`"${operator}" ${where}`)
  }

  /** A name, quoted or not. */
  expectName(what: string): string {
    const { kind, text } = this.token
    const isName = (kind === 'name' || kind === 'quoted-name') && text !== ''
    if (!isName) throw this.unexpected(what)
    this.#at += 1
    return text
  }

  /** Counts what stands inside something else, and bounds it: the parser and the compiler call themselves. */
  nested<T>(parse: () => T): T {
    this.#depth += 1
    if (this.#depth > limits.scriptNesting.max)
      throw this.error(`blocks and brackets are nested deeper than ${limits.scriptNesting.max}`)
    const parsed = parse()
    this.#depth -= 1
    return parsed
  }

  /** An error at the next token: `wanted` names what should stand there. */
  unexpected(wanted: string): ScriptSyntaxError {
    return this.error(
      this.atEnd ? `the script ends where ${wanted} is expected` : `expected ${wanted}, not ${this.#named()}`,
    )
  }

  /** An error at the next token; where the script is over, at the last one. */
  error(problem: string): ScriptSyntaxError {
    return this.#error(this.atEnd ? this.#tokens.at(-1) : this.token, problem)
  }

  #error(token: Token | undefined, problem: string): ScriptSyntaxError {
    const place = placeOf(this.#source, token?.start ?? 0)
    const excerpt = excerptOf(this.#source, token?.start ?? 0)
    return new ScriptSyntaxError({ ...place, problem, excerpt })
  }

  #named(): string {
    const { kind, text } = this.token
    if (kind === 'keyword') return `the word "${text}"`
    if (kind === 'string') return 'a string'
    if (kind === 'parameter') return `"@${shorten(text)}"`
    return `"${shorten(text)}"`
  }
}

function linesOf(source: string, tokens: readonly Token[]): Int32Array {
  const lines = new Int32Array(tokens.length)
  let line = 1
  let newline = source.indexOf('\n')
  for (const [index, { start }] of tokens.entries()) {
    while (newline !== -1 && newline < start) {
      line += 1
      newline = source.indexOf('\n', newline + 1)
    }
    lines[index] = line
  }
  return lines
}

function shorten(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}...` : text
}
