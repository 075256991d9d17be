import { expect, it } from 'vitest'
import { InputBuffer } from './input-buffer.ts'

/** The inputs that lines make. */
function inputs(...lines: string[]): (string | undefined)[] {
  const buffer = new InputBuffer()
  return [...lines.map((line) => buffer.add(line)), buffer.take()]
}

it('a line that is complete is an input', () => {
  expect(inputs('set k 1', 'lock a', '', '# comment')).toEqual(['set k 1', 'lock a', '', '# comment', ''])
  // What is wrong, and no further line can mend, is told at once.
  expect(inputs('set k ~', 'if "open then')).toEqual(['set k ~', 'if "open then', ''])
})

it('a script goes on while a block, a bracket or an operator is open', () => {
  expect(inputs('if x then', '', 'return (1 +', '2)', 'end')).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    'if x then\n\nreturn (1 +\n2)\nend',
    '',
  ])
  expect(inputs('if x then')).toEqual([undefined, 'if x then'])
})

it('a script goes on after a let, until an empty line', () => {
  expect(inputs('let x = get k', 'return x')).toEqual([undefined, 'let x = get k\nreturn x', ''])
  expect(inputs('let x = set k 1', '')).toEqual([undefined, 'let x = set k 1\n', ''])
  expect(inputs('let x = 1', 'let y = 2', 'return x + y').at(2)).toBe('let x = 1\nlet y = 2\nreturn x + y')
})

it('a script goes on after a backslash at the end of a line', () => {
  expect(inputs('set a 1 \\', '', 'get a')).toEqual([undefined, 'set a 1 \n', 'get a', ''])
  expect(inputs('set a 1\\ ', 'get a')).toEqual([undefined, 'set a 1\nget a', ''])
})

it('a command is one line, whatever it says', () => {
  expect(inputs('lock if', 'help begin')).toEqual(['lock if', 'help begin', ''])
})
