import type { Assembler } from './assembler.ts'
import type { TransactionOptions } from './begin-options.ts'
import { caseTable } from './case-tables.ts'
import { functions } from './functions.ts'
import { Flag, Op } from './program.ts'
import type { Chain, Expression, Logic, Read } from './syntax.ts'

const ARITHMETIC: Readonly<Record<string, number>> = { '+': 1, '-': 2, '*': 3, '/': 4 }
const COMPARISON: Readonly<Record<string, number>> = {
  '<': 1,
  '<=': 2,
  '>': 3,
  '>=': 4,
  '==': 5,
  '!=': 6,
}

/** True if the value may carry what a read gave: such a one goes only into registers for those. */
export function carries(expression: Expression): boolean {
  switch (expression.kind) {
    case 'read':
    case 'variable':
    case 'index':
    case 'array':
      return true
    case 'chain':
      return expression.rest.at(-1)?.operator === '..'
    case 'call':
      return expression.name === 'rev' || expression.name === 'revision'
    default:
      return false
  }
}

/** Compiles expressions of one script. */
export class ExpressionCompiler {
  readonly #to: Assembler
  readonly #options: TransactionOptions

  constructor(to: Assembler, options: TransactionOptions) {
    this.#to = to
    this.#options = options
  }

  /** Gives the register where the value will be: `into`, if it is given. */
  compile(expression: Expression, into?: number): number {
    const { registers } = this.#to
    switch (expression.kind) {
      case 'constant':
        return this.#moved(registers.constant(expression.value), into, expression.line)
      case 'parameter':
        return this.#moved(registers.parameter(expression.name), into, expression.line)
      case 'variable':
        return this.#moved(registers.variable(expression.name), into, expression.line)
      case 'chain':
        return this.#chain(expression, into)
      case 'logic':
        return this.#logic(expression, into)
      case 'read':
        return this.read(expression, into ?? registers.temporary(true), true)
      default:
        return this.#simple(expression, into ?? registers.temporary(carries(expression)))
    }
  }

  /** A read into a register; `into` 0 is none. `quiet`: it is not the newest answer of the script. */
  read(read: Read, into: number, quiet: boolean): number {
    const { command, line } = read
    const isListing = command === 'bucket' || command === 'prefix'
    const to = this.#to
    const key = to.key(read.key, isListing)
    const operand = this.#instant(read)
    let flags = (read.ephemeral ? Flag.ephemeral : 0) | (quiet ? Flag.quiet : 0)
    if (read.at !== undefined) flags |= Flag.at
    else if (operand > 0) flags |= Flag.asOf
    else this.#lock(read, key)
    if (isListing) {
      to.emit(line, Op.list, into, key, command === 'prefix' ? flags | Flag.prefix : flags, operand)
    } else if (command === 'get' && operand === 0) {
      to.emit(line, Op.get, into, key, flags)
    } else {
      to.emit(line, Op.read, into, key, command === 'exists' ? flags | Flag.exists : flags, operand)
    }
    return into
  }

  /** Register of the revision or the instant that is read, 0 for now. */
  #instant(read: Read): number {
    if (read.at !== undefined) return this.compile(read.at)
    if (read.asOf !== undefined) return this.compile(read.asOf)
    const { snapshot } = this.#options
    return snapshot === undefined ? 0 : this.#to.registers.constant(snapshot)
  }

  #lock({ command, ephemeral }: Read, key: number): void {
    this.#to.countKeyOperation()
    if (this.#options.locking === 'optimistic') return
    this.#to.lock(key, ephemeral, false, command === 'bucket' || command === 'prefix' ? command : undefined)
  }

  #moved(from: number, into: number | undefined, line: number): number {
    if (into === undefined) return from
    this.#to.emit(line, Op.move, into, from)
    return into
  }

  #chain({ first, rest }: Chain, into: number | undefined): number {
    const to = this.#to
    let left = this.compile(first)
    let own: number | undefined
    for (const [index, { operator, operand, line }] of rest.entries()) {
      const mark = to.registers.mark()
      const right = this.compile(operand)
      to.registers.release(mark)
      // Only the last operation writes into `into`, which the operands may name; the others take one register together.
      const isLast = index === rest.length - 1
      const target = (isLast ? into : undefined) ?? own ?? to.registers.temporary(operator === '..')
      own = target
      const arithmetic = ARITHMETIC[operator]
      const comparison = COMPARISON[operator]
      if (arithmetic !== undefined) to.emit(line, Op.arithmetic, target, arithmetic, left, right)
      else if (comparison !== undefined) to.emit(line, Op.compare, target, comparison, left, right)
      else to.emit(line, Op.range, target, left, right)
      left = target
    }
    return left
  }

  #logic({ operator, operands, line }: Logic, into: number | undefined): number {
    const to = this.#to
    const target = to.registers.temporary(false)
    const jumps: number[] = []
    let left = this.compile(operands[0] as Expression)
    for (const operand of operands.slice(1)) {
      jumps.push(to.emit(line, Op.logic, target, operator === '&&' ? 1 : 2, left, 0))
      const right = this.compile(operand)
      to.emit(line, Op.logicEnd, target, left, right)
      left = target
    }
    for (const jump of jumps) to.jumpHere(jump, 4)
    return this.#moved(target, into, line)
  }

  #simple(
    expression: Exclude<
      Expression,
      { readonly kind: 'constant' | 'parameter' | 'variable' | 'chain' | 'logic' | 'read' }
    >,
    into: number,
  ): number {
    const to = this.#to
    const { line } = expression
    switch (expression.kind) {
      case 'unary': {
        const operand = this.compile(expression.operand)
        to.emit(line, expression.operator === '-' ? Op.negate : Op.not, into, operand)
        return into
      }
      case 'index': {
        const array = this.compile(expression.array)
        to.emit(line, Op.index, into, array, this.compile(expression.index))
        return into
      }
      case 'array': {
        const items = expression.items.map((item) => this.compile(item))
        to.emit(line, Op.array, into, items.length, ...items)
        return into
      }
      case 'status':
        to.emit(line, Op.status, into, expression.word === 'set' ? 1 : 2)
        return into
      case 'call':
        return this.#call(expression.name, expression.args, line, into)
    }
  }

  #call(name: string, args: readonly Expression[], line: number, into: number): number {
    const to = this.#to
    const known = functions.get(name)
    if (known === undefined) {
      to.stop(line, { reason: 'undefined-function', problem: `there is no function "${name}"` })
      return into
    }
    if (known.arity !== args.length) {
      const problem = `${name} takes ${known.arity} ${known.arity === 1 ? 'argument' : 'arguments'}, not ${args.length}`
      to.stop(line, { reason: 'arity', problem })
      return into
    }
    const [first, second] = args
    const a = first === undefined ? 0 : this.compile(first)
    let b = second === undefined ? 0 : this.compile(second)
    if (name === 'upper' || name === 'lower') b = to.registers.constant(caseTable(name))
    to.calls.set(to.emit(line, Op.call, into, known.id, a, b), name)
    return into
  }
}
