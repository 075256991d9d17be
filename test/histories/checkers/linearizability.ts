import type { Recorded } from '../recorded.ts'

/** What one object does: a state, and which answers fit it. */
export interface Model<S, O> {
  readonly initial: S
  /**
   * The state after `operation`, or `undefined` if its answer does not fit `state`. One without an answer gives
   * `undefined` where it would change nothing: leaving it out is the same.
   */
  readonly step: (state: S, operation: O) => S | undefined
  /** True if the answer of `operation` fits neither `state` nor any that can follow: such a way need not be followed. */
  readonly isTooLate: (state: S, operation: O) => boolean
  /** Two states with the same text are the same state. */
  readonly textOf: (state: S) => string
}

export type Order = 'yes' | 'no' | 'gave up'

const MOST_STEPS = 3_000_000

/**
 * Looks for an order in which `operations`, one at a time, give the answers they gave, each between its invocation and
 * its answer. One without an answer may come at any time after its invocation, or not at all.
 *
 * The search is that of Wing and Gong (Testing and verifying concurrent objects, 1993) with the memory of Lowe (Testing
 * for linearizability, 2017): the next in order is any operation invoked before the first answer that is still to
 * come, and a set of operations that was reached in the same state is not looked at twice. Exponential in the number of
 * operations that overlap; those without an answer overlap with all that follows.
 */
export function findOrder<S, O extends Recorded>(
  operations: readonly O[],
  model: Model<S, O>,
  mostSteps = MOST_STEPS,
): Order {
  const calls = [...operations].sort((a, b) => a.invokedMs - b.invokedMs)
  let due = calls.filter(isAnswered).length
  if (due === 0) return 'yes'

  const open = new OpenCalls(calls)
  const seen = new Set<string>()
  const path: { readonly state: S; readonly next: Iterator<number>; readonly taken: number }[] = []
  const goOn = (state: S, taken: number, next: readonly number[]) =>
    path.push({ state, taken, next: next[Symbol.iterator]() })
  goOn(model.initial, -1, open.candidates())

  for (let steps = 0; ; steps += 1) {
    if (steps > mostSteps) return 'gave up'
    const here = path.at(-1)
    if (here === undefined) return 'no'
    const { value: index, done } = here.next.next()
    if (done === true) {
      path.pop()
      if (here.taken < 0) return 'no'
      if (isAnswered(calls[here.taken] as O)) due += 1
      open.putBack(here.taken)
      continue
    }
    const call = calls[index] as O
    const state = model.step(here.state, call)
    if (state === undefined) continue
    open.take(index)
    const reached = `${open.text()} ${model.textOf(state)}`
    if (seen.has(reached)) {
      open.putBack(index)
      continue
    }
    seen.add(reached)
    const next = open.candidates()
    if (next.some((other) => model.isTooLate(state, calls[other] as O))) {
      open.putBack(index)
      continue
    }
    if (isAnswered(call)) due -= 1
    if (due === 0) return 'yes'
    goOn(state, index, next)
  }
}

function isAnswered(call: Recorded): boolean {
  return Number.isFinite(call.endedMs)
}

/** The calls that are not in the order yet, as a list that a call is taken from and put back to in its old place. */
class OpenCalls {
  readonly #calls: readonly Recorded[]
  /** Place after the last is the end of the list, and its start. */
  readonly #after: Int32Array
  readonly #before: Int32Array
  readonly #end: number
  readonly #taken: Uint16Array

  constructor(calls: readonly Recorded[]) {
    const size = calls.length
    this.#calls = calls
    this.#end = size
    this.#after = Int32Array.from({ length: size + 1 }, (_, index) => (index === size ? 0 : index + 1))
    this.#before = Int32Array.from({ length: size + 1 }, (_, index) => (index === 0 ? size : index - 1))
    this.#taken = new Uint16Array(Math.ceil(size / 16))
  }

  take(index: number): void {
    const before = this.#before[index] as number
    const after = this.#after[index] as number
    this.#after[before] = after
    this.#before[after] = before
    this.#flip(index)
  }

  putBack(index: number): void {
    this.#after[this.#before[index] as number] = index
    this.#before[this.#after[index] as number] = index
    this.#flip(index)
  }

  /** Which calls may be next: first those that have to be, the one that was answered first before the others. */
  candidates(): readonly number[] {
    const found: number[] = []
    let firstEndMs = Number.POSITIVE_INFINITY
    for (let index = this.#after[this.#end] as number; index !== this.#end; ) {
      const { invokedMs, endedMs } = this.#calls[index] as Recorded
      // By invocation: no later one can be next either.
      if (invokedMs > firstEndMs) break
      firstEndMs = Math.min(firstEndMs, endedMs)
      found.push(index)
      index = this.#after[index] as number
    }
    const endOf = (index: number) => this.#calls[index]?.endedMs ?? 0
    return found.sort((a, b) => (endOf(a) === endOf(b) ? a - b : endOf(a) - endOf(b)))
  }

  /** Which calls are taken, as text. */
  text(): string {
    return String.fromCharCode(...this.#taken)
  }

  #flip(index: number): void {
    const place = index >> 4
    this.#taken[place] = (this.#taken[place] as number) ^ (1 << (index & 15))
  }
}
