import { describe, expect, it } from 'vitest'
import { ScriptSyntaxError } from './errors.ts'
import { parseScript } from './parser.ts'
import type { Expression, Statement } from './syntax.ts'

/** An expression with all its brackets. */
function shown(expression: Expression): string {
  switch (expression.kind) {
    case 'constant':
      return typeof expression.value === 'string' ? `'${expression.value}'` : String(expression.value)
    case 'variable':
      return expression.name
    case 'parameter':
      return `@${expression.name}`
    case 'chain':
      return expression.rest.reduce(
        (left, { operator, operand }) => `(${left} ${operator} ${shown(operand)})`,
        shown(expression.first),
      )
    case 'logic':
      return expression.operands
        .map(shown)
        .reduce((left, right) => `(${left} ${expression.operator} ${right})`)
    case 'unary':
      return `${expression.operator}(${shown(expression.operand)})`
    case 'call':
      return `${expression.name}(${expression.args.map(shown).join(', ')})`
    case 'array':
      return `[${expression.items.map(shown).join(', ')}]`
    case 'index':
      return `${shown(expression.array)}[${shown(expression.index)}]`
    case 'status':
      return `not ${expression.word}`
    case 'read': {
      const at = expression.at === undefined ? '' : ` at ${shown(expression.at)}`
      const asOf = expression.asOf === undefined ? '' : ` as of ${shown(expression.asOf)}`
      return `{${expression.command} ${expression.key.text}${at}${asOf}}`
    }
  }
}

function returned(text: string): string {
  const [statement] = parseScript(`return ${text}`).statements as [Statement & { readonly kind: 'return' }]
  return statement.value === undefined ? '' : shown(statement.value)
}

describe('expressions', () => {
  it.each([
    ['1 + 2 * 3 - 4', '((1 + (2 * 3)) - 4)'],
    ['20 - 5 - 3', '((20 - 5) - 3)'],
    ['a-1', '(a - 1)'],
    ['a - -1', '(a - -1)'],
    ['-a * 2', '(-(a) * 2)'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['not 1 == 2', '(not(1) == 2)'],
    ['1 < 2 = true', '((1 < 2) == true)'],
    ['a || b && c', '(a || (b && c))'],
    ['a && b && c || d', '(((a && b) && c) || d)'],
    ['1..n + 1', '(1 .. (n + 1))'],
    ['1 <> 2', '(1 != 2)'],
    ['not set && not found', '(not set && not found)'],
    ['!not -x', 'not(not(-(x)))'],
    ['xs[i + 1]', 'xs[(i + 1)]'],
    ['[1, [2], f(3, x)]', '[1, [2], f(3, x)]'],
    ['get a at 0 == get b', '({get a at 0} == {get b})'],
    ['get a as of t - 5 > 3', '({get a as of (t - 5)} > 3)'],
    ['not exists `x/y` && 1', '(not({exists x/y}) && 1)'],
    ['concat(get @k, "x")', "concat({get k}, 'x')"],
  ])('%s is %s', (text, wanted) => {
    expect(returned(text)).toBe(wanted)
  })
})

describe('statements', () => {
  it('need nothing between them, and take semicolons and comments', () => {
    const texts = [
      'set a 1 set b 2',
      ';;set a 1;;set b 2;',
      'set a 1 # one\nset b 2 # two',
      'SET a 1\r\nSeT b 2',
    ]
    for (const text of texts)
      expect(parseScript(text).statements.map(({ kind }) => kind)).toEqual(['set', 'set'])
  })

  it('take the last of a flag that is given twice', () => {
    const [statement] = parseScript('set a 1 ex 5 nx ex 6 nx').statements
    expect(statement).toMatchObject({ ifAbsent: true, ifPresent: false, ttl: { value: 6n } })
  })

  it('know their lines', () => {
    const text = 'set a 1\n\nif true then\n  set b 2\nelse\r\n  throw 1\nend'
    expect(parseScript(text).statements).toMatchObject([
      { line: 1 },
      { line: 3, body: [{ line: 4 }], otherwise: [{ line: 6 }] },
    ])
  })

  it.each([
    ['set', 'the script ends where a key is expected'],
    ['set k nx', 'expected a value, not the word "nx"'],
    ['if true then end', 'expected a statement after "then", not the word "end"'],
    ['let 5 = 1', 'expected the name of a variable, not "5"'],
    ['return 9223372036854775808', 'the integer does not fit into 64 bits'],
    ['foo', 'expected a statement, not "foo"'],
    ['set k {1}', 'expected a value, not "{"'],
    ['', 'the script ends where a statement is expected'],
  ])('%j: %s', (text, problem) => {
    expect(() => parseScript(text)).toThrow(ScriptSyntaxError)
    expect(() => parseScript(text)).toThrow(expect.objectContaining({ problem }))
  })
})
