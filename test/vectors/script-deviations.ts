import type { Expected } from './script-vectors.ts'

/** Where the vectors are corrected, and why. The page of decision 0018 has the same list. */
export const deviations: Readonly<
  Record<string, { readonly why: string; readonly script?: string; readonly expect?: Expected }>
> = {
  'set-001': {
    why: 'a character that the language does not have is told where it stands; the vector has the token upstream read last',
    expect: { error: { kind: 'syntax', line: 1, column: 8 }, state: { 'inv:widget': null } },
  },
  'lex-009': {
    why: 'a string without its end is told where it starts; the vector has the token upstream read last',
    expect: { error: { kind: 'syntax', line: 1, column: 7 }, state: { k: null } },
  },
  'setflags-023': {
    why: 'decision 11: the documented samples run as printed, `ex @ttl` among them, and parameters are text: text that is a whole number is taken',
    expect: { result: { type: 'set', revision: 0 }, state: { seat: 'y' } },
  },
  'revisions-010': {
    why: 'decision 11: `at` takes any expression, so `n` is a variable, and has no value',
    expect: { error: { kind: 'runtime', line: 1, code: 'undefined-variable' } },
  },
  'revisions-011': {
    why: 'decision 11: `at` takes any expression, a parameter too',
    expect: { result: { type: 'get', value: 'a', revision: 0 } },
  },
  'exists-005': {
    why: 'decision 11: reads stand inside expressions',
    expect: { result: { type: 'get', value: '1', revision: -1 } },
  },
  'extend-004': {
    why: 'decision 11: `extend` takes any expression',
    expect: { result: { type: 'extended', revision: 0 }, state: { ping: 'x' }, revisions: { ping: 0 } },
  },
  'return-007': {
    why: 'decision 11: reads stand inside expressions, so `return get k` returns what was read',
    expect: { result: { type: 'get', value: '1', revision: 0 }, state: { k: '1' } },
  },
  'sleep-004': {
    why: 'decision 11: `sleep` takes any expression',
    expect: { result: { type: 'get', value: '1', revision: -1 } },
  },
  'tx-025': {
    why: 'the reserved prefix is our own; a key that starts with it is invalid input, told before anything runs',
    script: 'set k 1 set `__holdfast:x` 1',
    expect: { error: { kind: 'invalid-input', line: 1 }, state: { k: null } },
  },
}
