import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { bundle } from '../../scripts/bundle.mjs'
import { eventually } from '../support/eventually.ts'
import { root } from '../support/migrated.ts'

/** How a run of the command ended. */
export interface CliRun {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface CliOptions {
  /** What it reads from its standard input, which then ends. Default: there is none. */
  readonly input?: string
  /** A command to run it under, such as one that gives it a terminal. */
  readonly under?: (command: readonly string[]) => readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** A run of the command that goes on, such as a worker. */
export interface CliProcess {
  readonly pid: number
  readonly ended: Promise<CliRun>
  /** What it has written so far, to both streams. */
  readonly output: () => string
  /** Waits until its output holds `text`. */
  says(text: string): Promise<void>
  signal(signal: NodeJS.Signals): void
  /** Closes the pipe that it writes its standard output to. */
  closeOutput(): void
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * A project of somebody's: a folder with an app file and the package as npm would install it, built from the
 * sources as they are now. The app's `import 'holdfast'` and the command are then found as they are by a user.
 */
export class CliProject {
  readonly folder: string
  readonly #running = new Map<ChildProcess, () => string>()

  constructor() {
    fs.mkdirSync(path.join(root, '.holdfast'), { recursive: true })
    this.folder = fs.mkdtempSync(path.join(root, '.holdfast/cli-'))
    const installed = path.join(this.folder, 'node_modules/holdfast')
    fs.mkdirSync(installed, { recursive: true })
    fs.copyFileSync(path.join(root, 'package.json'), path.join(installed, 'package.json'))
    fs.cpSync(path.join(root, 'sql'), path.join(installed, 'sql'), { recursive: true })
    bundle(path.join(installed, 'dist'))
    this.write('package.json', '{ "type": "module" }')
  }

  write(file: string, text: string): string {
    const full = path.join(this.folder, file)
    fs.mkdirSync(path.dirname(full), { recursive: true })
    fs.writeFileSync(full, text)
    return full
  }

  /** Starts the command in the project's folder. */
  start(args: readonly string[], options: CliOptions = {}): CliProcess {
    const main = path.join(this.folder, 'node_modules/holdfast/dist/cli/main.js')
    const own = [process.execPath, main, ...args]
    const [command = '', ...rest] = options.under?.(own) ?? own
    const child = spawn(command, rest, {
      cwd: this.folder,
      env: { ...cleanEnv(), ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    // It may end before it has read all.
    child.stdin.on('error', () => {})
    child.stdin.end(options.input ?? '')
    let stdout = ''
    let stderr = ''
    this.#running.set(child, () => `holdfast ${args.join(' ')} (${child.pid}):\n${stdout}${stderr}`)
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    const ended = new Promise<CliRun>((resolve) => {
      child.once('close', (code, signal) => {
        this.#running.delete(child)
        resolve({ code, signal, stdout, stderr })
      })
    })
    return {
      pid: child.pid as number,
      ended,
      output: () => stdout + stderr,
      async says(text) {
        await eventually(`the command says "${text}"`, () => (stdout + stderr).includes(text), {
          deadlineMs: 45_000,
        }).catch((late: Error) => {
          throw new Error(`${late.message}; it has said:\n${stdout}${stderr}`, { cause: late })
        })
      },
      signal: (signal) => void child.kill(signal),
      closeOutput: () => void child.stdout.destroy(),
      async [Symbol.asyncDispose]() {
        if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
        await ended
      },
    }
  }

  /** Runs the command to its end. */
  async run(args: readonly string[], options: CliOptions = {}): Promise<CliRun> {
    return await this.start(args, options).ended
  }

  /** Runs it with `--json` and gives what it printed. */
  async json<T = Record<string, unknown>>(args: readonly string[], options: CliOptions = {}): Promise<T> {
    const { code, stdout, stderr } = await this.run([...args, '--json'], options)
    if (code !== 0) throw new Error(`holdfast ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`)
    return JSON.parse(stdout) as T
  }

  /** What the runs that have not ended have written so far: for the message of a test that waits for one in vain. */
  output(): string {
    return [...this.#running.values()].map((written) => written()).join('\n')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#running.keys()) child.kill('SIGKILL')
    await Promise.resolve()
    fs.rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

function cleanEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(VITEST|NODE_OPTIONS$|NODE_ENV$|TEST$|DATABASE_URL$|PG|HOLDFAST_)/.test(name),
    ),
  )
}

/**
 * An application for tests. Handlers do what their input says: `{ wait: ms }`, `{ fail: text }`, `{ stuck: true }`
 * never returns, `{ deaf: ms }` ignores its signal for so long.
 */
export const appText = `
import { defineApp, defineJob } from 'holdfast'
import { z } from 'zod'

enum Kind { Work = 'work' } // not mere types to strip: the loader has to compile it
const input = z.object({
  wait: z.number().optional(), fail: z.string().optional(), stuck: z.boolean().optional(), deaf: z.number().optional(),
}).loose()
const sleep = (ms: number, signal?: AbortSignal) => new Promise<void>((resolve, reject) => {
  const timer = setTimeout(resolve, ms)
  signal?.addEventListener('abort', () => { clearTimeout(timer); reject(signal.reason as Error) })
})
export const work = defineJob({
  name: Kind.Work, input, idempotent: true, maxAttempts: 2, timeoutMs: Number(process.env.TIMEOUT_MS ?? 60_000), abortGraceMs: 200,
  retry: { type: 'fixed', delayMs: 3_600_000 },
  handler: async (ctx, given) => {
    ctx.log.info('working', { n: given.n })
    if (given.fail) throw new Error(given.fail)
    if (given.stuck) await new Promise(() => {})
    if (given.deaf) await sleep(given.deaf)
    if (given.wait) await sleep(given.wait, ctx.signal)
    return { done: true }
  },
})
export const mail = defineJob({ name: 'mail.send', queue: 'mail', input, idempotent: true, handler: async () => {} })
export default defineApp({
  name: 'cli-test', database: process.env.DATABASE_URL ?? 'pglite:./data', jobs: [work, mail],
  queues: { default: {}, mail: { concurrency: 3 } }, leaseMs: 1000, maxPollMs: Number(process.env.POLL_MS ?? 500), shutdownGraceMs: 300,
  shutdownMs: Number(process.env.SHUTDOWN_MS ?? 15_000),
})
`
