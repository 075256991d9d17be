import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Message } from './record.ts'

export interface ChildOptions {
  /** File of this folder to run. */
  readonly file: string
  readonly args?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  readonly onMessage: (message: Message) => void
}

export interface Child {
  readonly pid: number
  /** Resolves with the first `ready`; rejects if the process ends before it. */
  readonly ready: Promise<void>
  /** Resolves with how the process ended: an exit code or the name of a signal. */
  readonly ended: Promise<string>
  /** Tells the process something; nothing happens if it is gone. */
  tell(message: object): void
  /** Sends a signal at once, without waiting for the event loop. */
  signal(name: 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
}

const tsx = import.meta.resolve('tsx')
const running = new Set<ChildProcess>()

// However this process ends, no child is left behind; SIGKILL also ends one that is stopped.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts a process of the shop that ends with this one at the latest. */
export function startChild(options: ChildOptions): Child {
  const file = fileURLToPath(new URL(options.file, import.meta.url))
  const child = fork(file, options.args ?? [], {
    execArgv: ['--import', tsx],
    env: { ...process.env, ...options.env },
  })
  running.add(child)

  const ended = once(child, 'exit').then(([code, signal]) => {
    running.delete(child)
    return String(signal ?? `exit code ${code}`)
  })
  const ready = new Promise<void>((resolve, reject) => {
    child.on('message', (message: Message) => {
      if (message.type === 'ready') resolve()
      options.onMessage(message)
    })
    ended.then((how) => reject(new Error(`${options.file} ended before it was ready: ${how}`)), reject)
  })
  // Whoever does not wait for `ready` learns of an early end by `ended`.
  ready.catch(() => undefined)

  return {
    pid: child.pid ?? 0,
    ready,
    ended,
    tell: (message) => {
      if (child.connected) child.send(message, () => undefined)
    },
    signal: (name) => void child.kill(name),
  }
}
