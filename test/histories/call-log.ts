import { type App, HoldfastError } from '../../src/index.ts'
import type { Entry, Note } from '../chaos/history-log.ts'
import { machineMs } from '../chaos/history-log.ts'
import type { Random } from '../chaos/random.ts'
import type { Outcome, Recorded } from './recorded.ts'

/** What a call asks, or is answered. 64-bit numbers are text in a log. */
export type Facts = Readonly<Record<string, unknown>>

/** A call as a log has it. */
export interface LoggedCall extends Recorded {
  readonly workload: string
  readonly asked: Facts
  readonly answer: Facts | undefined
  /** Name and text of the error, if it threw one. */
  readonly error: string | undefined
}

/** One of those that work at the same time. Makes one call after the other, and logs each before and after. */
export class Client {
  readonly name: string
  readonly app: App
  readonly random: Random
  /** When the run started: what all processes call the same at the same time hangs on it. */
  readonly startMs: number
  readonly #note: Note
  #calls = 0

  constructor(options: {
    readonly name: string
    readonly app: App
    readonly random: Random
    readonly startMs: number
    readonly note: Note
  }) {
    this.name = options.name
    this.app = options.app
    this.random = options.random
    this.startMs = options.startMs
    this.#note = options.note
  }

  /** Begins the names of a run: what another one left in the database is not in its way. */
  get run(): string {
    return `run-${Math.floor(this.startMs)}`
  }

  /** Number of the span of `ms` that this is. Names change with it: a history of one name stays short. */
  epoch(ms: number): number {
    return Math.floor((machineMs() - this.startMs) / ms)
  }

  /** Unique in the run. */
  unique(): string {
    return `${this.name}.${this.#calls}`
  }

  /**
   * Makes a call, and gives what it resolved with; `undefined` if it did not. What it is answered, `answerOf` makes facts
   * of. An error that says that nothing was changed is a failure, every other leaves the outcome unknown.
   */
  async call<T>(
    workload: string,
    asked: Facts,
    act: () => T | Promise<T>,
    answerOf: (value: T) => Facts,
  ): Promise<T | undefined> {
    this.#calls += 1
    const call = `${this.name}#${this.#calls}`
    this.#note('call', { call, workload, asked })
    try {
      const value = await act()
      this.#note('answer', { call, answer: answerOf(value) })
      return value
    } catch (error) {
      const outcome = error instanceof HoldfastError && error.changed === 'nothing' ? 'failed' : 'unknown'
      this.#note(outcome, { call, error: String(error).slice(0, 200) })
      return undefined
    }
  }
}

/** The calls of a log. One that its process did not live to see answered is unknown. */
export function callsOf(entries: readonly Entry[]): readonly LoggedCall[] {
  const ends = new Map<unknown, Entry>()
  for (const entry of entries) if (isEnd(entry.kind)) ends.set(entry['call'], entry)
  return entries.flatMap((entry): readonly LoggedCall[] => {
    if (entry.kind !== 'call') return []
    const end = ends.get(entry['call'])
    const outcome = outcomeOf(end)
    return [
      {
        name: String(entry['call']),
        workload: String(entry['workload']),
        invokedMs: entry.t,
        endedMs: outcome === 'unknown' ? Number.POSITIVE_INFINITY : (end?.t ?? 0),
        outcome,
        asked: entry['asked'] as Facts,
        answer: end?.['answer'] as Facts | undefined,
        error: end?.['error'] as string | undefined,
      },
    ]
  })
}

function isEnd(kind: string): boolean {
  return kind === 'answer' || kind === 'failed' || kind === 'unknown'
}

function outcomeOf(end: Entry | undefined): Outcome {
  if (end === undefined || end.kind === 'unknown') return 'unknown'
  return end.kind === 'failed' ? 'failed' : 'ok'
}

/** A log in memory, which reads like one in a file. */
export function memoryLog(): { readonly note: Note; readonly entries: readonly Entry[] } {
  const entries: Entry[] = []
  const note: Note = (kind, facts = {}) => {
    const text = JSON.stringify({ kind, t: machineMs(), ...facts }, (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    )
    entries.push(JSON.parse(text) as Entry)
  }
  return { note, entries }
}
