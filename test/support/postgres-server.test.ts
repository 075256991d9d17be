import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { isAlive } from '../../scripts/processes.ts'
import { eventually } from './eventually.ts'
import { root } from './migrated.ts'
import { type Program, startProgram } from './processes.ts'

async function ask(url: string, text: string): Promise<unknown> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<Record<string, unknown>>(text)
    return Object.values(rows[0] ?? {})[0]
  } finally {
    await client.end()
  }
}

async function startedServer(owner: Program): Promise<{ pid: number; dataDir: string }> {
  const { pid, dataDir } = await owner.message('started')
  return { pid: Number(pid), dataDir: String(dataDir) }
}

describe('startPostgres', () => {
  it('serves over TCP below the ephemeral ports and over a short socket, and leaves nothing behind', async () => {
    const server = await startPostgres({ settings: volatileSettings })
    const { pid = 0, socketDir, dataDir } = server

    expect(server.port).toBeLessThan(32_768)
    expect(Buffer.byteLength(`${socketDir}/.s.PGSQL.${server.port}`)).toBeLessThan(107)
    expect(await ask(server.url(), 'show fsync')).toBe('off')
    expect(await ask(`postgres://postgres@/postgres?host=${socketDir}&port=${server.port}`, 'select 1')).toBe(
      1,
    )

    await server.stop()
    expect(isAlive(pid)).toBe(false)
    expect(fs.existsSync(dataDir)).toBe(false)
    expect(fs.existsSync(socketDir)).toBe(false)
  })

  it('keeps committed rows over kill, immediate and fast restarts, at the same address', async () => {
    await using server = await startPostgres({ settings: volatileSettings, port: 'none' })
    const address = server.url()
    await ask(address, 'create table kept (n int)')
    let rows = 0
    for (const down of [() => server.kill(), () => server.halt('immediate'), () => server.halt('fast')]) {
      await ask(address, `insert into kept values (1)`)
      rows += 1
      const before = server.pid
      await down()
      expect(server.pid).toBeUndefined()
      await expect(ask(address, 'select 1')).rejects.toThrow(/ENOENT|ECONNREFUSED/)
      await server.restart()
      expect(server.pid).not.toBe(before)
      expect(await ask(address, 'select count(*)::int from kept')).toBe(rows)
    }
  })

  it('keeps a home that the caller named, and starts from its data', async () => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'hf-home-'))
    fs.chmodSync(dir, 0o755)
    const first = await startPostgres({ dir, settings: volatileSettings })
    await ask(first.url(), 'create table kept as select 7 as n')
    await first.stop()

    await using second = await startPostgres({ dir, settings: volatileSettings })
    expect(await ask(second.url(), 'select n from kept')).toBe(7)
    await second.stop()
    fs.rmSync(dir, { recursive: true })
  })

  it('says why a server did not start', async () => {
    await expect(startPostgres({ settings: { no_such_setting: 1 } })).rejects.toThrow(/no_such_setting/)
  })

  it('ends the server of a run that was SIGKILLed at the next start, and nobody else’s', async () => {
    await using bystander = await startPostgres({ settings: volatileSettings })
    // A place of their own: any start on this machine would otherwise reap first.
    const env = { TMPDIR: fs.mkdtempSync(path.join(os.tmpdir(), 'hf-reap-')) }
    fs.chmodSync(env.TMPDIR, 0o755)
    const owner = startProgram('test/support/programs/own-a-server.ts', { env })
    const left = await startedServer(owner)
    await owner.kill()
    expect(isAlive(left.pid)).toBe(true)

    await using next = startProgram('test/support/programs/own-a-server.ts', { env })
    const { pid } = await startedServer(next)

    expect(isAlive(left.pid)).toBe(false)
    expect(fs.existsSync(left.dataDir)).toBe(false)
    expect(isAlive(pid)).toBe(true)
    expect(await ask(bystander.url(), 'select 1')).toBe(1)
    next.signal('SIGTERM')
    await next.exited
    fs.rmSync(env.TMPDIR, { recursive: true })
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'ends the server when its process gets %s',
    async (signal) => {
      await using owner = startProgram('test/support/programs/own-a-server.ts')
      const { pid } = await startedServer(owner)
      owner.signal(signal)
      expect(await owner.exited).toEqual({ code: null, signal })
      await eventually('the server is gone', () => !isAlive(pid))
    },
  )

  it('ends the server when its process ends without stopping it', async () => {
    const code = `
      import { startPostgres } from ${JSON.stringify(path.join(root, 'scripts/postgres-server.ts'))}
      console.log((await startPostgres()).pid)`
    const owner = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
      cwd: root,
    })
    let output = ''
    owner.stdout.on('data', (chunk) => {
      output += String(chunk)
    })
    await once(owner, 'close')
    expect(Number(output)).toBeGreaterThan(0)
    expect(isAlive(Number(output))).toBe(false)
  })
})
