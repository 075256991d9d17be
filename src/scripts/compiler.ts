import { Assembler } from './assembler.ts'
import { implicitTransaction, readBeginOptions, type TransactionOptions } from './begin-options.ts'
import { carries, ExpressionCompiler } from './compile-expression.ts'
import { ScriptError } from './errors.ts'
import type { Script } from './parser.ts'
import { Flag, Op, type Program } from './program.ts'
import { carryingVariables, findNestedBegin, producesAnswer } from './survey.ts'
import type { SetStatement, Statement, Write } from './syntax.ts'

type Let = Extract<Statement, { readonly kind: 'let' }>
type If = Extract<Statement, { readonly kind: 'if' }>
type For = Extract<Statement, { readonly kind: 'for' }>

/**
 * Makes the program of a script.
 *
 * @throws {ScriptError} `begin` is not the whole script, `commit` or `rollback` stands alone, an option is not known.
 */
export function compileScript({ statements, asksFound }: Script): Program {
  const [only] = statements
  const block = statements.length === 1 && only?.kind === 'begin' ? only : undefined
  const body = block?.body ?? statements
  const nested = findNestedBegin(body)
  if (nested !== undefined) {
    const problem = '"begin" must enclose the whole script'
    throw new ScriptError({ reason: 'nested-transaction', line: nested.line, problem })
  }
  if (statements.length === 1 && (only?.kind === 'commit' || only?.kind === 'rollback')) {
    const problem = `there is no transaction to ${only.kind === 'commit' ? 'commit' : 'roll back'}`
    throw new ScriptError({ reason: 'no-transaction', line: only.line, problem })
  }
  const options = block === undefined ? implicitTransaction : readBeginOptions(block.options)
  return new Compiler(body, options, asksFound).compile(block?.line ?? 1)
}

class Compiler {
  readonly #to = new Assembler()
  readonly #body: readonly Statement[]
  readonly #options: TransactionOptions
  readonly #expressions: ExpressionCompiler
  /** Variables that may carry a revision or be arrays: what is not read must clear it. */
  readonly #carrying: ReadonlySet<string>
  readonly #asksFound: boolean

  constructor(body: readonly Statement[], options: TransactionOptions, asksFound: boolean) {
    this.#body = body
    this.#options = options
    this.#expressions = new ExpressionCompiler(this.#to, options)
    this.#carrying = carryingVariables(body)
    this.#asksFound = asksFound
  }

  compile(line: number): Program {
    const to = this.#to
    this.#statements(this.#body, true)
    this.#end(this.#body.at(-1)?.line ?? line)
    const { registers } = to
    return {
      code: to.code,
      constants: registers.constants,
      parameters: registers.parameters,
      variables: registers.variables,
      keys: to.keys,
      locks: to.locks,
      places: to.places,
      stops: to.stops,
      calls: to.calls,
      timeoutMs: this.#options.timeoutMs,
      writes: to.writes,
    }
  }

  /** `isSeen`: the answer of the last statement may be that of the script. */
  #statements(statements: readonly Statement[], isSeen: boolean): void {
    for (const [index, statement] of statements.entries()) {
      const next = statements[index + 1]
      const isOverwritten = next === undefined ? !isSeen : producesAnswer(next)
      const mark = this.#to.registers.mark()
      this.#statement(statement, this.#asksFound || !isOverwritten)
      this.#to.registers.release(mark)
    }
  }

  #statement(statement: Statement, isSeen: boolean): void {
    const to = this.#to
    const { line } = statement
    switch (statement.kind) {
      case 'read':
        this.#expressions.read(statement, 0, false)
        return
      case 'set':
      case 'delete':
      case 'extend':
        this.#write(statement, 0)
        return
      case 'let':
        this.#let(statement, isSeen)
        return
      case 'if':
        this.#if(statement, isSeen)
        return
      case 'for':
        this.#for(statement)
        return
      case 'return':
        if (statement.value !== undefined)
          to.emit(line, Op.return, this.#expressions.compile(statement.value))
        this.#end(line)
        return
      case 'commit':
        to.emit(line, Op.end)
        return
      case 'rollback':
        to.stop(line, { abort: 'rollback' })
        return
      case 'sleep':
        to.emit(line, Op.sleep, this.#expressions.compile(statement.duration))
        return
      case 'throw':
        to.emit(line, Op.throw, this.#expressions.compile(statement.value))
        return
      case 'begin':
        throw new Error('holdfast: a nested begin was compiled; this is a fault of ours')
    }
  }

  /** The end of the script where nothing says `commit`. */
  #end(line: number): void {
    if (this.#options.autoCommit) this.#to.emit(line, Op.end)
    else this.#to.stop(line, { abort: 'no-commit' })
  }

  #let({ name, value, line }: Let, isSeen: boolean): void {
    const to = this.#to
    const variable = to.registers.variable(name)
    if (value.kind === 'read') {
      this.#expressions.read(value, variable, false)
      return
    }
    const isWrite = value.kind === 'set' || value.kind === 'delete' || value.kind === 'extend'
    if (isWrite) this.#write(value, variable)
    else this.#expressions.compile(value, variable)
    if (this.#carrying.has(name) && (isWrite || !carries(value))) to.emit(line, Op.clear, variable)
    if (!isWrite && isSeen) to.emit(line, Op.return, variable)
  }

  #write(write: Write, into: number): void {
    const to = this.#to
    to.writes = true
    if (this.#options.snapshot !== undefined) {
      to.stop(write.line, { abort: 'read-only-snapshot' })
      return
    }
    const key = to.key(write.key, false)
    to.lock(key, write.ephemeral, true)
    to.countKeyOperation()
    const flags = write.ephemeral ? Flag.ephemeral : 0
    if (write.kind === 'set') this.#set(write, into, key, flags)
    else if (write.kind === 'delete') to.emit(write.line, Op.delete, into, key, flags)
    else to.emit(write.line, Op.extend, into, key, flags, this.#expressions.compile(write.ttl))
  }

  #set(set: SetStatement, into: number, key: number, ephemeral: number): void {
    const { ttl, ifValue, ifRevision } = set
    const value = this.#expressions.compile(set.value)
    const registers = [ttl, ifValue, ifRevision].map((operand) =>
      operand === undefined ? 0 : this.#expressions.compile(operand),
    )
    const flags =
      ephemeral |
      (set.ifAbsent ? Flag.nx : 0) |
      (set.ifPresent ? Flag.xx : 0) |
      (set.norev ? Flag.norev : 0) |
      (ttl === undefined ? 0 : Flag.ttl) |
      (ifValue === undefined ? 0 : Flag.cmp) |
      (ifRevision === undefined ? 0 : Flag.cmprev)
    this.#to.emit(set.line, Op.set, into, key, flags, value, ...registers)
  }

  #if({ condition, body, otherwise, line }: If, isSeen: boolean): void {
    const to = this.#to
    const truth = this.#expressions.compile(condition)
    const test = to.emit(line, Op.ifNot, truth, 0)
    this.#statements(body, isSeen)
    if (otherwise.length === 0) {
      to.jumpHere(test, 2)
      return
    }
    const jump = to.emit(line, Op.jump, 0)
    to.jumpHere(test, 2)
    this.#statements(otherwise, isSeen)
    to.jumpHere(jump, 1)
  }

  #for({ name, items, body, line }: For): void {
    const to = this.#to
    const state = to.registers.own()
    const array = this.#expressions.compile(items)
    to.emit(line, Op.for, state, array)
    const next = to.emit(line, Op.next, to.registers.variable(name), state, 0, 0)
    const before = to.places.length
    to.loops += 1
    this.#statements(body, true)
    to.loops -= 1
    to.emit(line, Op.jump, next)
    to.code[next + 3] = to.places.length - before + 1
    to.jumpHere(next, 3)
  }
}
