import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { eventually } from '../support/eventually.ts'

export interface Pooler {
  /** The database by way of the pooler. */
  readonly url: string
  readonly log: () => string
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Starts pgbouncer in transaction pooling on loopback, with a configuration of its own, before the database of
 * `url`. It keeps few server connections, and hands each transaction whichever is free.
 */
export async function startPgbouncer(url: string, poolSize = 3): Promise<Pooler> {
  const target = new URL(url)
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-pgbouncer-'))
  const port = await freePort()
  const name = decodeURIComponent(target.pathname.slice(1))
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    default_pool_size: poolSize,
    max_client_conn: 200,
    server_reset_query: '',
    pidfile: path.join(dir, 'pid'),
  }
  const file = path.join(dir, 'pgbouncer.ini')
  const lines = Object.entries(settings).map(([key, value]) => `${key} = ${value}`)
  const host = target.searchParams.get('host') ?? target.hostname
  const serverPort = target.searchParams.get('port') ?? (target.port || '5432')
  fs.writeFileSync(
    file,
    `[databases]\n${name} = host=${host} port=${serverPort} dbname=${name} user=${target.username}\n[pgbouncer]\n${lines.join('\n')}\n`,
  )
  fs.chmodSync(dir, 0o777)
  // It refuses to run as root.
  const asRoot = process.getuid?.() === 0
  const [command, ...args] = [
    ...(asRoot ? ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups'] : []),
    'pgbouncer',
    file,
  ]
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += String(chunk)
  })
  child.on('error', (error) => {
    said += String(error)
  })
  const log = () => said
  try {
    await eventually('pgbouncer answers', async () => await answers(port))
  } catch (error) {
    await end(child)
    throw new Error(`pgbouncer did not start: ${said}`, { cause: error })
  }
  return {
    url: `postgres://${target.username}@127.0.0.1:${port}/${name}`,
    log,
    async [Symbol.asyncDispose]() {
      await end(child)
      fs.rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await gone
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ host: '127.0.0.1', port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
