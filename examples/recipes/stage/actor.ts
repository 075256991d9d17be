import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** What an actor tells. */
export interface Told {
  readonly kind: string
  readonly [fact: string]: unknown
}

/** A process that plays a part: it can be killed, stopped and woken, as processes in the world are. */
export interface Actor {
  readonly name: string
  /** All it has told, in order. */
  readonly told: readonly Told[]
  /** How it ended: an exit code or the name of a signal. */
  readonly ended: Promise<string>
  /** The next thing of that kind that it tells. Rejects if it ends before. */
  next(kind: string): Promise<Told>
  signal(name: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): void
}

export interface ActorOptions {
  /** The module to run. */
  readonly file: URL
  /** The actor's first argument. */
  readonly name: string
  readonly env?: Readonly<Record<string, string>>
  readonly onTold?: (told: Told) => void
}

const tsx = import.meta.resolve('tsx')
const running = new Set<ChildProcess>()

// However this process ends, none is left behind; SIGKILL also ends one that is stopped.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export function startActor({ file, name, env, onTold }: ActorOptions): Actor {
  const child = fork(fileURLToPath(file), [name], {
    execArgv: ['--import', tsx],
    env: { ...process.env, ...env },
  })
  running.add(child)
  const told: Told[] = []
  const listeners = new Set<(told: Told) => void>()
  child.on('message', (message: Told) => {
    told.push(message)
    onTold?.(message)
    for (const listener of listeners) listener(message)
  })
  const ended = once(child, 'exit').then(([code, signal]) => {
    running.delete(child)
    return String(signal ?? `exit code ${code}`)
  })

  const next = async (kind: string): Promise<Told> =>
    await new Promise<Told>((resolve, reject) => {
      const listener = (message: Told) => {
        if (message.kind !== kind) return
        listeners.delete(listener)
        resolve(message)
      }
      listeners.add(listener)
      ended.then((how) => reject(new Error(`${name} ended (${how}) before it told "${kind}"`)), reject)
    })

  return { name, told, ended, next, signal: (signal) => void child.kill(signal) }
}
