import { randomBytes } from 'node:crypto'
import type { Durability } from '../../base/durability.ts'
import { usageError } from '../cli-error.ts'
import { closest } from './closest.ts'
import { commandNamed, commands } from './commands.ts'
import type { Paint } from './paint.ts'
import { took } from './paint.ts'
import { answerLines } from './script-lines.ts'
import type { ShellLock, ShellServices } from './services.ts'
import { statementWords } from './statement-words.ts'
import { firstWord, wordsOf } from './words.ts'

export interface SessionOptions {
  readonly services: ShellServices
  readonly paint: Paint
  /** Whose keys, locks and sequences. `undefined`: nobody's. */
  readonly tenant: string | undefined
  /** True to show how long an answer took. */
  readonly timings: boolean
  /** Writes a line of an answer. */
  readonly print: (line: string) => void
  /** Empties the screen, where there is one. */
  readonly clear: () => void
  /** What was typed before, oldest first. */
  readonly inputs: () => readonly string[]
}

/** What an input is: a command of the shell, or a script. */
export type InputKind = 'nothing' | 'command' | 'script'

/** What kind of input `text` is, by its first word. */
export function kindOf(text: string): InputKind {
  // Lines of comments alone are nothing to run.
  if (text.split('\n').every((line) => /^\s*(#|$)/.test(line))) return 'nothing'
  const word = firstWord(text)
  return word !== undefined && commandNamed(word) !== undefined ? 'command' : 'script'
}

/**
 * One user at one shell: runs inputs one after the other, and keeps parameters and locks between them.
 *
 * Locks taken here belong to the session: the same lock is given to it again with the same token, and all are released when it
 * is closed. A shell that is killed leaves them to the end of their leases.
 */
export class Session {
  readonly services: ShellServices
  readonly tenant: string | undefined
  readonly owner = `shell-${randomBytes(8).toString('hex')}`
  /** For scripts: by name, without `@`. */
  readonly params = new Map<string, string>()
  readonly clear: () => void
  readonly inputs: () => readonly string[]
  /** The text of the script that ran last, which an error may be about. */
  lastScript = ''
  /** True once the user wants to leave. */
  ended = false
  readonly #options: SessionOptions
  readonly #locks = new Map<string, ShellLock>()

  constructor(options: SessionOptions) {
    this.#options = options
    this.services = options.services
    this.tenant = options.tenant
    this.clear = options.clear
    this.inputs = options.inputs
  }

  /** Runs one input, and prints its answer. Throws what the input could not do. */
  async run(text: string, signal: AbortSignal): Promise<void> {
    const kind = kindOf(text)
    if (kind === 'nothing') return
    const startMs = performance.now()
    if (kind === 'script') {
      requireStatement(text)
      this.#print(await unlessAborted(this.script(text, signal), signal), startMs)
      return
    }
    const word = firstWord(text) as string
    const command = commandNamed(word)
    if (command === undefined) return
    const rest = text.trimStart().slice(word.length).trim()
    const { paint, print } = this.#options
    const running = command.run({ args: wordsOf(rest), rest, session: this, paint, signal, print })
    if (command.isTimed) this.#print(await unlessAborted(running, signal), startMs)
    else this.#print(await running, undefined)
  }

  /** Runs a script with the session's parameters, and gives the lines of its answer. */
  async script(text: string, signal: AbortSignal): Promise<readonly string[]> {
    const { tenant } = this
    this.lastScript = text
    const answer = await this.services.script(text, Object.fromEntries(this.params), { tenant, signal })
    return answerLines(answer, text, this.#options.paint)
  }

  /** The lock that this session was given, if it was. */
  lock(resource: string, durability: Durability): ShellLock | undefined {
    return this.#locks.get(lockId(resource, durability))
  }

  keep(resource: string, durability: Durability, lock: ShellLock): void {
    this.#locks.set(lockId(resource, durability), lock)
  }

  forget(resource: string, durability: Durability): void {
    this.#locks.delete(lockId(resource, durability))
  }

  /** Releases the session's locks. Never throws: what cannot be released is free after its lease. */
  async close(): Promise<void> {
    const locks = [...this.#locks.values()]
    this.#locks.clear()
    await Promise.allSettled(locks.map(async (lock) => await lock.release()))
  }

  #print(lines: readonly string[], startMs: number | undefined): void {
    const { paint, print, timings } = this.#options
    const time = timings && startMs !== undefined ? `  ${paint.faint(took(performance.now() - startMs))}` : ''
    for (const [index, line] of lines.entries()) print(index === lines.length - 1 ? line + time : line)
  }
}

/** Ctrl-C does not wait for an answer: what was sent may still take effect. */
async function unlessAborted<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop: (() => void) | undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([running, aborted])
  } finally {
    if (stop) signal.removeEventListener('abort', stop)
    // Nobody is left to be told.
    running.catch(() => {})
  }
}

function lockId(resource: string, durability: Durability): string {
  return `${durability} ${resource}`
}

/** A mistyped command would be told as a fault of a script. */
function requireStatement(text: string): void {
  const word = firstWord(text)
  if (word === undefined || statementWords.has(word)) return
  const near = closest(word, [...commands.map(({ name }) => name), ...statementWords])
  throw usageError(
    `there is no command or statement "${word}"${near === undefined ? '' : `; did you mean "${near}"?`}; see "help"`,
  )
}
