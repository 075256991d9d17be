import { carries } from './compile-expression.ts'
import type { Statement } from './syntax.ts'

/** Every statement, those in blocks too. */
function* allStatements(statements: readonly Statement[]): Generator<Statement> {
  for (const statement of statements) {
    yield statement
    if (statement.kind === 'if') {
      yield* allStatements(statement.body)
      yield* allStatements(statement.otherwise)
    }
    if (statement.kind === 'for' || statement.kind === 'begin') yield* allStatements(statement.body)
  }
}

/** A `begin` inside the script. */
export function findNestedBegin(statements: readonly Statement[]): Statement | undefined {
  for (const statement of allStatements(statements)) if (statement.kind === 'begin') return statement
  return undefined
}

/** Variables that some statement gives a value that carries a revision, or an array. */
export function carryingVariables(statements: readonly Statement[]): ReadonlySet<string> {
  const names = new Set<string>()
  for (const statement of allStatements(statements)) {
    if (statement.kind === 'for') names.add(statement.name)
    if (statement.kind !== 'let') continue
    const { value } = statement
    const isWrite = value.kind === 'set' || value.kind === 'delete' || value.kind === 'extend'
    if (!isWrite && carries(value)) names.add(statement.name)
  }
  return names
}

/** True if the statement sets the newest answer, whatever it meets: that of the statement before it is not seen. */
export function producesAnswer(statement: Statement): boolean {
  switch (statement.kind) {
    case 'set':
    case 'delete':
    case 'extend':
    case 'read':
    case 'let':
      return true
    case 'return':
      return statement.value !== undefined
    default:
      return false
  }
}
