import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import type { ServerUser } from './owned-folders.ts'
import {
  initdb,
  type PostgresVersion,
  prepareBinaries,
  serverEnvironment,
  serverUser,
} from './postgres-binaries.ts'
import { createHome, type Home, reapLeftovers, removeHome, writeOwner } from './postgres-home.ts'
import { childrenOf, endNow, isAlive, readText, sendSignal, waitUntil } from './processes.ts'

/**
 * A private PostgreSQL server made from npm's binaries, for tests, demo, benchmark and chaos runs.
 *
 * Each server has a home, a folder with its data, socket and log. The server is a child of this process in a
 * session of its own, so that Ctrl-C reaches it only through us. How it ends:
 *
 * - `stop()` or dispose: fast shutdown, then the home is removed (a home given as `dir` stays, with its data);
 * - this process exits or gets SIGINT, SIGTERM or SIGHUP: immediate shutdown from the exit hook, the same removal;
 * - this process is SIGKILLed: the server lives on without an owner. The next `startPostgres` of the same user
 *   finds its record, sees that the owner is gone (process id and start time) and ends the server. A process
 *   is only ended if its command line names that home, so a reused process id hits nobody.
 */
export interface PostgresServer {
  readonly version: PostgresVersion
  /** TCP port on 127.0.0.1, or the number in the socket's file name when there is no TCP. */
  readonly port: number
  /** Folder of the unix socket, short enough for any database driver. */
  readonly socketDir: string
  readonly dataDir: string
  readonly logFile: string
  /** Process id of the postmaster; `undefined` while it is down. */
  readonly pid: number | undefined
  /** Address of `database` as superuser `postgres`: over TCP, or over the socket where there is no TCP. */
  url(database?: string): string
  /** Takes the server down and leaves it down, data kept: `fast` ends sessions, `immediate` crashes it. */
  halt(mode: ShutdownMode): Promise<void>
  /** SIGKILLs the postmaster and all its children at once, as a machine that loses power does to processes. */
  kill(): Promise<void>
  /** Takes the server down (if it is up) and brings it back at the same port and socket. */
  restart(mode?: ShutdownMode): Promise<void>
  /** Ends the server for good and removes what it left on disk. A second call does nothing. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export type ShutdownMode = 'fast' | 'immediate'

export interface PostgresOptions {
  /** Major version. Default: 18. */
  readonly version?: PostgresVersion
  /** Home of the server; kept, and started again from its data. Default: a temporary one. */
  readonly dir?: string
  /** Server settings, given on the command line. Default: none, so that commits are durable. */
  readonly settings?: Readonly<Record<string, string | number>>
  /** TCP port on 127.0.0.1, or `'none'` for the unix socket alone. Default: a free one below 32 768. */
  readonly port?: number | 'none'
}

/** For tests: nothing outlives a crash of the machine, but all of it a crash of the server. */
export const volatileSettings = { fsync: 'off', full_page_writes: 'off' } as const

/** Ports from 32 768 on are handed out by Linux to outgoing connections, and so are taken at random. */
const PORTS = { from: 20_000, below: 32_000 }
const PORT_TRIES = 20
const START_DEADLINE_MS = 60_000
const HALT_DEADLINE_MS = 20_000

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  reapLeftovers()
  const user = serverUser()
  const version = options.version ?? 18
  const bin = path.join(prepareBinaries(version, user), 'bin')
  const home = createHome(options.dir, user)
  const server = new Server({ ...options, version, bin, home, user })
  try {
    await server.start()
  } catch (error) {
    server.abandon()
    throw error
  }
  return server
}

interface ServerOptions extends PostgresOptions {
  readonly version: PostgresVersion
  readonly bin: string
  readonly home: Home
  readonly user: ServerUser
}

class Server implements PostgresServer {
  readonly version: PostgresVersion
  readonly socketDir: string
  readonly dataDir: string
  readonly logFile: string
  port = 5432
  readonly #options: ServerOptions
  #process: ChildProcess | undefined
  #killed = false
  #stopped: Promise<void> | undefined

  constructor(options: ServerOptions) {
    this.#options = options
    this.version = options.version
    this.dataDir = path.join(options.home.dir, 'data')
    this.logFile = path.join(options.home.dir, 'server.log')
    this.socketDir = options.home.socketDir
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  url(database = 'postgres'): string {
    const name = encodeURIComponent(database)
    return this.#options.port === 'none'
      ? `postgres://postgres@/${name}?host=${encodeURIComponent(this.socketDir)}&port=${this.port}`
      : `postgres://postgres@127.0.0.1:${this.port}/${name}`
  }

  async start(): Promise<void> {
    const { port, home, user } = this.#options
    endAtExit.add(this)
    installExitHooks()
    writeOwner(home, 0)
    if (!fs.existsSync(path.join(this.dataDir, 'PG_VERSION'))) initdb(this.#options.bin, this.dataDir, user)
    if (typeof port === 'number') this.port = port
    if (port !== undefined) return await this.#launch()
    for (let tries = 1; ; tries += 1) {
      this.port = await freePort()
      try {
        return await this.#launch()
      } catch (error) {
        // Somebody took the port between our look and the server's.
        const taken = fs
          .readFileSync(path.join(home.dir, 'server.log'), 'utf8')
          .includes('could not create any TCP')
        if (!taken || tries === PORT_TRIES) throw error
      }
    }
  }

  async halt(mode: ShutdownMode): Promise<void> {
    await this.#end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
  }

  async kill(): Promise<void> {
    const pid = this.pid
    if (pid === undefined) return
    // Stopped first, so that no child is forked between the listing and the kill.
    process.kill(pid, 'SIGSTOP')
    const children = childrenOf(pid)
    const end = this.#end('SIGKILL')
    for (const child of children) sendSignal(child, 'SIGKILL')
    this.#killed = true
    await end
    await waitUntil(() => !children.some(isAlive), HALT_DEADLINE_MS, 'backends still there after SIGKILL')
  }

  async restart(mode: ShutdownMode = 'fast'): Promise<void> {
    if (this.#stopped) throw new Error('this PostgreSQL server was stopped for good')
    await this.halt(mode)
    await this.#launch()
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** Ends the server without waiting on the event loop, for the exit hook; at most two seconds. */
  abandon(): void {
    endAtExit.delete(this)
    const pid = this.pid
    if (pid !== undefined) endNow(pid)
    removeHome(this.#options.home)
  }

  async #stop(): Promise<void> {
    // A server that was killed leaves shared memory behind, which only its next start removes.
    if (this.#killed && this.pid === undefined) await this.#launch()
    await this.halt('fast')
    endAtExit.delete(this)
    removeHome(this.#options.home)
  }

  async #launch(): Promise<void> {
    const { bin, home, user, settings } = this.#options
    const all = {
      listen_addresses: this.#options.port === 'none' ? '' : '127.0.0.1',
      port: this.port,
      unix_socket_directories: this.socketDir,
      ...settings,
    }
    const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const log = fs.openSync(this.logFile, 'w')
    const child = spawn(path.join(bin, 'postgres'), ['-D', this.dataDir, ...args], {
      ...user,
      // To a file: a pipe would block or break the server once this process is gone.
      stdio: ['ignore', log, log],
      cwd: '/',
      env: serverEnvironment(),
      detached: true,
    })
    fs.closeSync(log)
    this.#process = child
    child.once('exit', () => {
      if (this.#process === child) this.#process = undefined
    })
    await new Promise<void>((resolve, reject) => child.once('spawn', resolve).once('error', reject))
    writeOwner(home, child.pid ?? 0)
    try {
      await waitUntil(() => this.#isReady(child), START_DEADLINE_MS, 'not ready')
    } catch (cause) {
      if (child.exitCode === null) await this.#end('SIGQUIT')
      throw new Error(`PostgreSQL ${this.version} did not start: ${tail(this.logFile)}`, { cause })
    }
    this.#killed = false
    // A program that forgot to stop the server may end all the same: the exit hook sees to the rest.
    child.unref()
  }

  /** The status line of postmaster.pid, rather than the log: it does not depend on a language. */
  #isReady(child: ChildProcess): boolean {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('the server ended')
    const lines = readText(path.join(this.dataDir, 'postmaster.pid')).split('\n')
    return lines[0] === String(child.pid) && /ready|standby/.test(lines[7] ?? '')
  }

  async #end(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void> {
    const child = this.#process
    if (child?.pid === undefined) return
    child.ref()
    const ended = once(child, 'exit')
    const timer = setTimeout(() => child.kill('SIGKILL'), HALT_DEADLINE_MS)
    sendSignal(child.pid, signal)
    await ended
    clearTimeout(timer)
  }
}

const endAtExit = new Set<Server>()
let hooked = false

function installExitHooks(): void {
  if (hooked) return
  hooked = true
  process.on('exit', abandonAll)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const onSignal = () => {
      // Whoever else listens (a demo, vitest) decides when the process ends; the exit hook runs then.
      if (process.listenerCount(signal) > 1) return
      abandonAll()
      process.off(signal, onSignal)
      process.kill(process.pid, signal)
    }
    process.on(signal, onSignal)
  }
}

function abandonAll(): void {
  for (const server of endAtExit) server.abandon()
}

async function freePort(): Promise<number> {
  for (let tries = 0; tries < 200; tries += 1) {
    const port = randomInt(PORTS.from, PORTS.below)
    if (await canListen(port)) return port
  }
  throw new Error(`no free TCP port from ${PORTS.from} to ${PORTS.below}`)
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = net.createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}

function tail(file: string): string {
  return readText(file).slice(-800)
}
