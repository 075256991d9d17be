import type { Random } from '../chaos/random.ts'

/** Makes random scripts that follow the grammar, most of which run. */
export class ScriptGenerator {
  readonly #random: Random
  #depth = 0

  constructor(random: Random) {
    this.#random = random
  }

  script(): string {
    const { chance, whole, pick } = this.#random
    if (chance(0.15)) {
      const options = chance(0.5) ? ` (${this.#list(whole(1, 2), () => this.#option(), ', ')})` : ''
      return (
        this.#word('begin') +
        options +
        this.#blank() +
        this.#statements(whole(1, 4)) +
        pick([' commit end', ' end', ' commit\nend'])
      )
    }
    return this.#statements(whole(1, 3))
  }

  #statements(count: number): string {
    return this.#list(
      count,
      () => this.#statement(),
      this.#random.pick([' ', '\n', '; ', '\r\n', ' # note\n']),
    )
  }

  #statement(): string {
    this.#depth += 1
    const { whole, chance } = this.#random
    const kind = this.#depth > 3 ? whole(0, 7) : whole(0, 13)
    const made = this.#statementOf(kind, whole, chance)
    this.#depth -= 1
    return made
  }

  #statementOf(kind: number, whole: Random['whole'], chance: Random['chance']): string {
    switch (kind) {
      case 0:
      case 1:
        return this.#write()
      case 2:
        return this.#read()
      case 3:
      case 4:
      case 5:
        return `${this.#word('let')} ${this.#name()} = ${chance(0.2) ? this.#write() : this.#expression()}`
      case 6:
        return chance(0.5) ? `return ${this.#expression()}` : 'return'
      case 7:
        return this.#random.pick([
          'sleep 0',
          'commit',
          'rollback',
          `throw ${this.#expression()}`,
          'sleep 1',
          `let ${this.#name()} = 1`,
        ])
      case 8:
      case 9:
      case 10:
        return `if ${this.#expression()} then ${this.#statements(whole(1, 2))}${chance(0.5) ? ` else ${this.#statements(whole(1, 2))}` : ''} end`
      case 11:
      case 12:
        return `for ${this.#name()} in ${chance(0.7) ? `${whole(-2, 3)}..${whole(0, 5)}` : this.#expression()} do ${this.#statements(whole(1, 2))} end`
      default:
        return chance(0.1) ? `begin ${this.#statements(1)} end` : this.#write()
    }
  }

  #write(): string {
    const { pick, whole } = this.#random
    const kind = whole(0, 9)
    if (kind > 7) return `${pick(['delete', 'del', 'edelete', 'EDEL'])} ${this.#key()}`
    if (kind > 6) return `${pick(['extend', 'eextend'])} ${this.#key()} ${this.#expression()}`
    const flags = this.#list(whole(0, 2), () => this.#flag(), ' ')
    return `${pick(['set', 'eset', 'SET'])} ${this.#key()} ${this.#expression()} ${flags}`
  }

  #flag(): string {
    const flag = this.#random.pick(['nx', 'xx', 'norev', 'ex', 'cmp', 'cmprev'])
    return flag.startsWith('n') || flag === 'xx' ? flag : `${flag} ${this.#expression()}`
  }

  #read(): string {
    const { pick, chance, whole } = this.#random
    const when = chance(0.2) ? ` as of ${this.#expression()}` : ''
    switch (whole(0, 9)) {
      case 0:
        return `${pick(['get', 'eget'])} by bucket ${this.#key()}${when}`
      case 1:
        return `${pick(['scan', 'escan'])} by prefix ${this.#key()}${when}`
      default:
        return `${pick(['get', 'eget', 'exists', 'eexists'])} ${this.#key()}${chance(0.15) ? ` at ${this.#expression()}` : when}`
    }
  }

  #expression(): string {
    this.#depth += 1
    const { pick, whole } = this.#random
    const kind = this.#depth > 4 ? whole(0, 7) : whole(0, 17)
    let made: string
    if (kind < 2) made = String(whole(-3, 12))
    else if (kind === 2)
      made = pick(['1.5', '0.0', '1000000000000000000.0', '0.00001', '9223372036854775807', '2'])
    else if (kind === 3)
      made = pick(["'a'", '"5"', "'1.5'", "''", "'é😀'", "'true'", String.raw`'\n\'\u00e9'`])
    else if (kind === 4) made = pick(['true', 'false', 'null', 'not set', 'not found'])
    else if (kind === 5) made = pick(['@p', '@n', '@key', '@missing'])
    else if (kind < 8) made = this.#name()
    else if (kind < 12)
      made = `${this.#expression()} ${pick(['+', '-', '*', '/', '<', '>', '<=', '>=', '==', '=', '!=', '<>', '&&', '||', '..'])} ${this.#expression()}`
    else if (kind === 12) made = `(${this.#expression()})`
    else if (kind === 13) made = `${pick(['not ', '!', '-'])}${this.#expression()}`
    else if (kind === 14) made = `${this.#name()}[${this.#expression()}]`
    else if (kind === 15) made = `[${this.#list(whole(0, 3), () => this.#expression(), ', ')}]`
    else if (kind === 16) made = this.#call()
    else made = `(${this.#read()})`
    this.#depth -= 1
    return made
  }

  #call(): string {
    const { pick, whole, chance } = this.#random
    const one =
      'abs ceil floor to_int to_float to_str to_bool is_int is_null is_array to_json upper lower len count rev expires'
    if (chance(0.05)) return pick(['nope(1)', 'abs()', 'current_time()', 'concat(1)'])
    if (chance(0.3))
      return `${pick(['min', 'max', 'pow', 'round', 'concat'])}(${this.#expression()}, ${this.#expression()})`
    return `${one.split(' ')[whole(0, one.split(' ').length - 1)]}(${this.#expression()})`
  }

  #key(): string {
    return this.#random.pick(['a', 'b', '`x/y`', "'x/z'", '"it\'s"', '@key', '@p', 'x', '``', '`é`'])
  }

  #name(): string {
    return this.#random.pick(['a', 'b', 'c', 'i', '_x1', '`set`'])
  }

  #option(): string {
    const { pick } = this.#random
    return pick([
      'locking=optimistic',
      'locking=pessimistic',
      'autoCommit=true',
      'autoCommit=no',
      'timeout=1000',
      'snapshot=5',
      'priority=high',
      'colour=1',
      'timeout=@p',
    ])
  }

  #word(word: string): string {
    return this.#random.chance(0.1) ? word.toUpperCase() : word
  }

  #blank(): string {
    return this.#random.pick([' ', '\n', '\t', '  '])
  }

  #list(count: number, make: () => string, between: string): string {
    return Array.from({ length: count }, make).join(between)
  }
}

const PIECES = [
  "'",
  '"',
  '`',
  '(',
  ')',
  '[',
  ']',
  'end',
  'begin',
  'then',
  '@',
  '#',
  '\n',
  '\0',
  '..',
  '.',
  '\\',
  'é',
  '😀',
  '\ud800',
  '{',
  '$',
  ' 9'.repeat(20),
  'not',
  '=',
  ',',
]

/** Breaks a script: a piece left out, doubled, moved, or replaced by something that does not belong there. */
export function mutate(script: string, random: Random): string {
  const pieces = script.match(/\w+|\s+|[^\w\s]/g) ?? ['']
  for (let count = random.whole(1, 3); count > 0; count -= 1) {
    const at = random.whole(0, pieces.length - 1)
    const other = random.whole(0, pieces.length - 1)
    switch (random.whole(0, 4)) {
      case 0:
        pieces[at] = ''
        break
      case 1:
        pieces[at] = `${pieces[at]} ${pieces[at]}`
        break
      case 2:
        pieces[at] = random.pick(PIECES)
        break
      case 3:
        pieces[at] = pieces[other] as string
        break
      default:
        pieces[at] = String.fromCharCode(random.whole(0, 0xffff))
    }
  }
  return pieces.join('')
}
