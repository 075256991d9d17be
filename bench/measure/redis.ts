import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'

export type Fsync = 'always' | 'everysec'

const START_DEADLINE_MS = 10_000

/** A private Redis on the loopback interface with an append-only file, gone with `stop` or this process. */
export class RedisServer {
  readonly url: string
  readonly #process: ChildProcess
  readonly #dir: string

  private constructor(port: number, process: ChildProcess, dir: string) {
    this.url = `redis://127.0.0.1:${port}`
    this.#process = process
    this.#dir = dir
  }

  static async start(fsync: Fsync): Promise<RedisServer> {
    const port = randomInt(20_000, 32_000)
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-bench-redis-'))
    const settings = {
      port,
      bind: '127.0.0.1',
      dir,
      appendonly: 'yes',
      appendfsync: fsync,
      save: '',
      'maxmemory-policy': 'noeviction',
    }
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
    const child = spawn('redis-server', args, { stdio: 'ignore' })
    const server = new RedisServer(port, child, dir)
    process.once('exit', () => child.kill('SIGKILL'))
    const until = performance.now() + START_DEADLINE_MS
    while ((await say(port, 'PING').catch(() => '')) === '') {
      if (performance.now() > until || child.exitCode !== null) throw new Error('redis-server did not start')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return server
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  async flush(): Promise<void> {
    await say(Number(new URL(this.url).port), 'FLUSHALL SYNC')
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.kill('SIGKILL')
    await ended
    fs.rmSync(this.#dir, { recursive: true, force: true })
  }
}

/** Sends one command and resolves with what comes back. */
function say(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1')
    socket.once('connect', () => socket.write(`${command}\r\n`))
    socket.once('data', (answer) => {
      socket.destroy()
      resolve(answer.toString())
    })
    socket.once('error', reject)
  })
}
