import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { type Proxy, startProxy } from '../support/proxy.ts'
import { type Entry, HistoryReader, machineMs } from './history-log.ts'

/** One life of a process: from its start to its end. */
export interface Life {
  readonly slot: string
  readonly child: ChildProcess
  readonly pid: number
  readonly history: HistoryReader
  readonly leaseMs: number
  readonly startedMs: number
  readonly exited: Promise<void>
  /** Why the supervisor ended it; `undefined` while it runs, or if it ended by itself. */
  ordered: 'kill' | 'stop' | undefined
  endedMs: number | undefined
  exit: string | undefined
}

export interface SlotOptions {
  readonly name: string
  readonly program: string
  readonly artifacts: string
  readonly url: string
  readonly leaseMs: number
  readonly settings: Readonly<Record<string, unknown>>
  /** An end that nobody ordered: a poison pill, or a fault of ours. */
  readonly onUnordered: (life: Life) => void
}

/** A place for one process, which is started again when it ends, behind a proxy of its own. */
export class Slot {
  readonly options: SlotOptions
  readonly proxy: Proxy
  readonly lives: Life[] = []
  /** A fault has hold of it. */
  busy = false
  #closing = false

  private constructor(options: SlotOptions, proxy: Proxy) {
    this.options = options
    this.proxy = proxy
  }

  static async open(options: SlotOptions): Promise<Slot> {
    const slot = new Slot(options, await startProxy(options.url))
    slot.start()
    return slot
  }

  get name(): string {
    return this.options.name
  }

  get life(): Life {
    return this.lives.at(-1) as Life
  }

  get alive(): boolean {
    return this.life.endedMs === undefined
  }

  /** True once this life has said that it works. */
  get ready(): boolean {
    return this.alive && this.life.history.read().some(({ kind }) => kind === 'ready')
  }

  start(): void {
    const { name, program, artifacts, leaseMs, settings } = this.options
    const base = path.join(artifacts, `${name}.${this.lives.length + 1}`)
    const history = `${base}.jsonl`
    const stderr = fs.openSync(`${base}.stderr`, 'a')
    const facts = { ...settings, name, url: this.proxy.url(), leaseMs, history }
    const child = spawn(process.execPath, [program], {
      env: { ...process.env, NODE_OPTIONS: '', CHAOS: JSON.stringify(facts) },
      stdio: ['pipe', stderr, stderr],
    })
    fs.closeSync(stderr)
    child.stdin?.on('error', () => {})
    const exited = new Promise<void>((resolve) => {
      child.once('exit', (code, signal) => {
        running.delete(child)
        life.endedMs = machineMs()
        life.exit = signal ?? `code ${code}`
        if (life.ordered === undefined && !this.#closing) this.options.onUnordered(life)
        resolve()
      })
    })
    const life: Life = {
      slot: name,
      child,
      pid: child.pid ?? 0,
      history: new HistoryReader(history),
      leaseMs,
      startedMs: machineMs(),
      exited,
      ordered: undefined,
      endedMs: undefined,
      exit: undefined,
    }
    endAllAtExit()
    running.add(child)
    this.lives.push(life)
  }

  /** SIGKILL, and waits for the end. */
  async kill(): Promise<void> {
    this.life.ordered = 'kill'
    this.life.child.kill('SIGKILL')
    await this.life.exited
  }

  /**
   * SIGTERM, as a deploy does; SIGKILL and `false` if it has not ended within `withinMs`. Jobs end within two seconds;
   * the rest is for a statement on a link that broke or froze under it, which is given up after 30 s.
   */
  async stop(withinMs = 40_000): Promise<boolean> {
    const { life } = this
    if (life.endedMs !== undefined) return true
    life.ordered = 'stop'
    life.child.kill('SIGTERM')
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      life.child.kill('SIGKILL')
    }, withinMs)
    await life.exited
    clearTimeout(timer)
    return !isLate
  }

  pause(): void {
    this.life.child.kill('SIGSTOP')
  }

  resume(): void {
    this.life.child.kill('SIGCONT')
  }

  async close(): Promise<void> {
    this.#closing = true
    if (this.alive) await this.kill()
    await this.proxy.close()
  }

  /** Entries of all lives, each with the life it belongs to. */
  entries(): readonly { readonly life: Life; readonly entry: Entry }[] {
    return this.lives.flatMap((life) => life.history.read().map((entry) => ({ life, entry })))
  }
}

const running = new Set<ChildProcess>()
let hooked = false

function endAllAtExit(): void {
  if (hooked) return
  hooked = true
  process.on('exit', () => {
    for (const child of running) child.kill('SIGKILL')
  })
}
