import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Entry, HistoryReader, machineMs } from './history-log.ts'

/** A call of the provider, as its caller words it. */
export interface Call {
  readonly idempotencyKey: string
  /** What the effect is for: its key in the ledger. */
  readonly key: string
  readonly job: string
  readonly token: string
  readonly slot: string
  readonly pid: number
}

const START_MS = 20_000

/** The provider double, in a process of its own. See `provider-program.ts`. */
export class ProviderDouble {
  readonly url: string
  readonly #child: ChildProcess
  readonly #history: HistoryReader

  private constructor(url: string, child: ChildProcess, history: HistoryReader) {
    this.url = url
    this.#child = child
    this.#history = history
  }

  static async start(program: string, artifacts: string): Promise<ProviderDouble> {
    const history = new HistoryReader(path.join(artifacts, 'provider.jsonl'))
    const stderr = fs.openSync(path.join(artifacts, 'provider.stderr'), 'a')
    const child = spawn(process.execPath, [program], {
      env: { ...process.env, NODE_OPTIONS: '', CHAOS: JSON.stringify({ history: history.file }) },
      stdio: ['pipe', stderr, stderr],
    })
    fs.closeSync(stderr)
    for (const untilMs = machineMs() + START_MS; ; await delay(20)) {
      const ready = history.read().find(({ kind }) => kind === 'ready')
      if (ready) return new ProviderDouble(`http://127.0.0.1:${String(ready['port'])}`, child, history)
      if (machineMs() > untilMs || child.exitCode !== null) throw new Error('the provider did not start')
    }
  }

  /** All calls and questions so far. */
  entries(): readonly Entry[] {
    return this.#history.read()
  }

  /** The next call of that process: it is taken, and its caller is left without an answer. */
  async hold(pid: number, withinMs: number): Promise<Call | undefined> {
    const body = JSON.stringify({ pid, withinMs })
    const answer = await fetch(`${this.url}/hold`, { method: 'POST', body })
    return answer.ok ? ((await answer.json()) as Call) : undefined
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }
}

/** What the provider has under that key; `undefined` if it was never called with it. */
export async function findReceipt(
  url: string,
  idempotencyKey: string,
  signal?: AbortSignal,
): Promise<unknown> {
  const question = `${url}/find?idempotencyKey=${encodeURIComponent(idempotencyKey)}`
  const answer = await fetch(question, signal === undefined ? {} : { signal })
  if (answer.ok) return await answer.json()
  if (answer.status === 404) return undefined
  throw new Error(`the provider answered ${answer.status}`)
}
