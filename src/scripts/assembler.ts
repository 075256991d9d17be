import { Op, type ProgramKey, type ProgramLock, type Stop } from './program.ts'
import { Registers } from './registers.ts'
import type { Key } from './syntax.ts'

/** Puts a program together, instruction by instruction. */
export class Assembler {
  readonly registers = new Registers()
  readonly code: number[] = []
  readonly places: (readonly [at: number, line: number])[] = []
  readonly stops = new Map<number, Stop>()
  readonly calls = new Map<number, string>()
  readonly keys: ProgramKey[] = []
  /** Instructions that read or write a key as it is now, those in loops counted twice. */
  keyOperations = 0
  /** How many loops are open. */
  loops = 0
  writes = false
  readonly #keys = new Map<string, number>()
  readonly #locks = new Map<string, ProgramLock>()

  /** Where the next instruction will be. */
  get here(): number {
    return this.code.length + 1
  }

  /** Appends an instruction and gives where it starts. */
  emit(line: number, ...numbers: readonly number[]): number {
    const at = this.here
    this.places.push([at, line])
    // No spread: an array literal may have more items than a call takes arguments.
    for (const number of numbers) this.code.push(number)
    return at
  }

  /** Ends the script here, for a reason that the interpreter need not know. */
  stop(line: number, stop: Stop): void {
    this.stops.set(this.emit(line, Op.stop), stop)
  }

  /** Fills in where an instruction at `at` jumps to: its operand `operand`, from 1. */
  jumpHere(at: number, operand: number): void {
    this.code[at - 1 + operand] = this.here
  }

  /** Number of a key. */
  key({ text, isParameter, line }: Key, isListing: boolean): number {
    const id = `${isParameter} ${isListing} ${text}`
    let number = this.#keys.get(id)
    if (number === undefined) {
      number = this.keys.push({ text, isParameter, isListing, line })
      this.#keys.set(id, number)
    }
    return number
  }

  /** Notes that the key is locked from the start. */
  lock(key: number, ephemeral: boolean, writes: boolean, listing?: 'bucket' | 'prefix'): void {
    const id = `${key} ${ephemeral} ${listing ?? ''}`
    const known = this.#locks.get(id)
    this.#locks.set(id, { key, ephemeral, writes: writes || known?.writes === true, listing })
  }

  /** Notes an instruction on a key as it is now. */
  countKeyOperation(): void {
    this.keyOperations += this.loops > 0 ? 2 : 1
  }

  /** A lone operation on a key is atomic by itself. */
  get locks(): readonly ProgramLock[] {
    return this.keyOperations > 1 ? [...this.#locks.values()] : []
  }
}
