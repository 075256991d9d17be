import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { EventEmitter } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { nextEvent, type WaitOptions, withResolvers } from './eventually.ts'

/** The start of a process is in it, which takes long where many start at once. */
const DEADLINE_MS = 45_000

/** A line that a program told its test: one JSON object, `kind` says which. */
export interface ProgramMessage {
  readonly kind: string
  readonly [fact: string]: unknown
}

export interface ProgramEvents {
  message: [ProgramMessage]
}

export interface ProgramExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface ProgramOptions {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Flags of Node, such as `--max-old-space-size=64`. */
  readonly nodeArgs?: readonly string[]
  /** A command to run Node under, such as `faketime`. */
  readonly under?: readonly string[]
}

/** A Node process of its own that runs one TypeScript file: what a test stops, freezes and kills. */
export interface Program {
  readonly pid: number
  /** All messages so far, in order. */
  readonly messages: readonly ProgramMessage[]
  readonly events: EventEmitter<ProgramEvents>
  /** Settles when the process has ended; never rejects. */
  readonly exited: Promise<ProgramExit>
  /** What it wrote to stderr, and lines of stdout that are no messages. */
  readonly output: string
  /** The first message of `kind` that `where` accepts, also one that has come already. Rejects if the process ends first. */
  message(kind: string, options?: MessageOptions): Promise<ProgramMessage>
  /** Writes one JSON line to its stdin. */
  send(message: ProgramMessage): void
  /** SIGSTOP: it stands still, and its connections stay open. */
  pause(): void
  /** SIGCONT. */
  resume(): void
  signal(signal: NodeJS.Signals): void
  /** SIGKILL, and waits for the end. */
  kill(): Promise<ProgramExit>
  [Symbol.asyncDispose](): Promise<void>
}

export interface MessageOptions extends WaitOptions {
  readonly where?: (message: ProgramMessage) => boolean
}

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..')
const running = new Set<ChildProcessWithoutNullStreams>()
let hooked = false

/** Starts `file` (a path from the repository's root, or absolute) as a program; `test/support/program.ts` is its side. */
export function startProgram(file: string, options: ProgramOptions = {}): Program {
  const node = [
    process.execPath,
    '--import',
    'tsx',
    ...(options.nodeArgs ?? []),
    path.resolve(root, file),
    ...(options.args ?? []),
  ]
  // tsx as a loader rather than as a command: the command starts a second process, and signals would miss it.
  const [command = '', ...args] = [...(options.under ?? []), ...node]
  const child = spawn(command, args, {
    cwd: root,
    env: { ...withoutVitest(process.env), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  endAllAtExit()
  running.add(child)
  return new RunningProgram(child, file)
}

class RunningProgram implements Program {
  readonly messages: ProgramMessage[] = []
  readonly events = new EventEmitter<ProgramEvents>()
  readonly exited: Promise<ProgramExit>
  output = ''
  readonly #child: ChildProcessWithoutNullStreams
  readonly #file: string
  #ended: ProgramExit | undefined

  constructor(child: ChildProcessWithoutNullStreams, file: string) {
    this.#child = child
    this.#file = file
    const { promise, resolve } = withResolvers<ProgramExit>()
    this.exited = promise
    // 'close' rather than 'exit': by then all that it wrote has been read.
    child.once('close', (code, signal) => {
      running.delete(child)
      this.#ended = { code, signal }
      resolve(this.#ended)
    })
    child.once('error', (error) => {
      this.output += `${error.message}\n`
    })
    // Whoever writes to a program that is gone learns it from `exited`.
    child.stdin.on('error', () => {})
    child.stderr.on('data', (chunk) => {
      this.output += String(chunk)
    })
    createInterface({ input: child.stdout }).on('line', (line) => this.#take(line))
  }

  get pid(): number {
    const { pid } = this.#child
    if (pid === undefined) throw new Error(`${this.#file} did not start: ${this.output}`)
    return pid
  }

  async message(kind: string, options: MessageOptions = {}): Promise<ProgramMessage> {
    const { where = () => true } = options
    const wanted = (message: ProgramMessage) => message.kind === kind && where(message)
    const known = this.messages.find(wanted)
    if (known) return known
    if (this.#ended) throw this.#gone(kind, this.#ended)
    const coming = nextEvent(this.events, 'message', { deadlineMs: DEADLINE_MS, ...options, where: wanted })
    const gone = this.exited.then((exit) => {
      throw this.#gone(kind, exit)
    })
    // The loser of the race is nobody's error.
    gone.catch(() => {})
    coming.catch(() => {})
    try {
      const [message] = await Promise.race([coming, gone])
      return message
    } catch (cause) {
      throw new Error(`no message "${kind}" from ${this.#file}; it wrote: ${this.output.slice(-800)}`, {
        cause,
      })
    }
  }

  send(message: ProgramMessage): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`)
  }

  pause(): void {
    this.signal('SIGSTOP')
  }

  resume(): void {
    this.signal('SIGCONT')
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async kill(): Promise<ProgramExit> {
    this.signal('SIGKILL')
    return await this.exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#ended) await this.kill()
  }

  #take(line: string): void {
    const message = parseMessage(line)
    if (message === undefined) {
      this.output += `${line}\n`
      return
    }
    this.messages.push(message)
    this.events.emit('message', message)
  }

  #gone(kind: string, { code, signal }: ProgramExit): Error {
    return new Error(`${this.#file} ended (code ${code}, signal ${signal}) before its message "${kind}"`)
  }
}

function parseMessage(line: string): ProgramMessage | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && 'kind' in value
      ? (value as ProgramMessage)
      : undefined
  } catch {
    // Any program may print a line that begins with a brace.
    return undefined
  }
}

/** Vitest's own variables would change how Node and libraries behave in the program. */
function withoutVitest(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(VITEST|NODE_OPTIONS$|NODE_ENV$|TEST$)/.test(name)),
  )
}

function endAllAtExit(): void {
  if (hooked) return
  hooked = true
  process.on('exit', () => {
    for (const child of running) child.kill('SIGKILL')
  })
}
