import type { Constant } from './syntax.ts'

/** To a map, -0 and 0 are one key. */
const NEGATIVE_ZERO = Symbol('-0')

/** Numbers of registers handed out for a script. */
export class Registers {
  /** 1 is the answer of `return`. */
  readonly constants: (Constant | undefined)[] = [undefined]
  readonly parameters = new Map<number, string>()
  readonly variables = new Map<number, string>()
  readonly #byConstant = new Map<Constant | symbol, number>()
  readonly #byParameter = new Map<string, number>()
  readonly #byVariable = new Map<string, number>()
  readonly #plain = { all: [] as number[], used: 0 }
  readonly #carrying = { all: [] as number[], used: 0 }

  constant(value: Constant): number {
    const key = Object.is(value, -0) ? NEGATIVE_ZERO : value
    return this.#known(this.#byConstant, key, () => this.#add(value))
  }

  parameter(name: string): number {
    return this.#known(this.#byParameter, name, () => {
      const register = this.#add(undefined)
      this.parameters.set(register, name)
      return register
    })
  }

  variable(name: string): number {
    return this.#known(this.#byVariable, name, () => {
      const register = this.#add(undefined)
      this.variables.set(register, name)
      return register
    })
  }

  /** A register that nothing else uses. */
  own(): number {
    return this.#add(undefined)
  }

  /**
   * A register for the rest of the statement. One for values that carry a revision, or for arrays, is never used for
   * others: these do not clear what an earlier value carried.
   */
  temporary(carrying: boolean): number {
    const pool = carrying ? this.#carrying : this.#plain
    const register = pool.all[pool.used] ?? this.own()
    pool.all[pool.used] = register
    pool.used += 1
    return register
  }

  /** The temporary registers in use, for {@link release}. */
  mark(): readonly [plain: number, carrying: number] {
    return [this.#plain.used, this.#carrying.used]
  }

  release([plain, carrying]: readonly [plain: number, carrying: number]): void {
    this.#plain.used = plain
    this.#carrying.used = carrying
  }

  #known<K>(known: Map<K, number>, key: K, make: () => number): number {
    const register = known.get(key) ?? make()
    known.set(key, register)
    return register
  }

  #add(value: Constant | undefined): number {
    return this.constants.push(value)
  }
}
