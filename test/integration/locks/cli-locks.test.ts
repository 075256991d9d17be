import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { acquireAs, extendAs, releaseAs } from '../../../src/admin/locks.ts'
import { type App, defineApp } from '../../../src/index.ts'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { CliProject, type CliRun } from '../cli-project.ts'

let project: CliProject
let db: TestDatabase
let app: App

beforeAll(async () => {
  project = new CliProject()
  db = await createDatabase()
  app = defineApp({ name: 'test', database: db.url, jobs: [] })
}, 120_000)
afterAll(async () => {
  await app.close()
  await db.drop()
  await project[Symbol.asyncDispose]()
})

const run = async (...args: string[]): Promise<CliRun> => await project.run([...args, '--database', db.url])

describe('holdfast locks', () => {
  it('lists what is held, page by page, of one tenant or of all', async () => {
    expect((await run('locks', 'list', '--ephemeral')).stdout).toBe('no locks are held\n')
    const first = await app.locks.acquire('a', { owner: 'me' })
    await app.locks.acquire('b', { tenant: 't' })
    await app.locks.acquire('c', { durability: 'ephemeral' })
    const page = JSON.parse((await run('locks', 'list', '--limit', '1', '--json')).stdout) as {
      locks: object[]
      next: string
    }
    expect(page).toMatchObject({
      locks: [{ resource: 'a', tenant: '', owner: 'me', fencingToken: String(first.fencingToken) }],
      next: expect.any(String),
    })
    const next = await run('locks', '--after', page.next)
    expect(next.stdout).toMatch(/^resource +tenant +owner/)
    expect(next.stdout).toContain('b         t')
    expect((await run('locks', 'list', '--tenant', 't')).stdout).not.toContain('me')
    expect((await run('locks', 'list', '--ephemeral')).stdout).toContain('c ')
  })

  it('shows who holds one, takes it with a reason, and shows who did that', async () => {
    const lock = await app.locks.acquire('shown')
    const shown = await run('locks', 'show', 'shown')
    expect(shown.stdout).toContain(`fencing token  ${lock.fencingToken}\n`)
    const taken = await run('locks', 'release', 'shown', '--reason', 'its host burnt', '--by', 'anna')
    expect(taken).toMatchObject({ code: 0, stderr: '' })
    expect(taken.stdout).toBe(
      `"shown" is free: it was taken from ${lock.owner}, with fencing token ${lock.fencingToken}\n`,
    )
    expect(await lock.extend(1000)).toBe(false)
    const after = JSON.parse((await run('locks', 'show', 'shown', '--json')).stdout) as object
    expect(after).toMatchObject({
      resource: 'shown',
      held: false,
      audit: [{ actor: 'anna', action: 'lock-release', note: 'its host burnt' }],
    })
    expect((await run('locks', 'show', 'shown')).stdout).toMatch(
      /nobody holds it[\s\S]*by anna: its host burnt/,
    )
  })

  it('refuses what cannot be right, and changes nothing', async () => {
    await app.locks.acquire('stays')
    for (const [args, code] of [
      [['locks', 'release', 'stays'], 2],
      [['locks', 'release', 'stays', '--reason', ' '], 2],
      [['locks', 'release', 'nobody', '--reason', 'x'], 1],
      [['locks', 'release', 'stays', '--tenant', 'other', '--reason', 'x'], 1],
      [['locks', 'list', '--limit', '0'], 2],
      [['locks', 'list', '--after', 'x'], 2],
      [['locks', 'show', ''], 2],
    ] as const)
      expect(await run(...args)).toMatchObject({
        code,
        stdout: '',
        stderr: expect.stringMatching(/^error: /),
      })
    expect(await app.locks.info('stays')).toMatchObject({ resource: 'stays' })
  })
})

describe('a person who knows the owner', () => {
  it('acquires, extends and releases in its name', async () => {
    const { database } = app.internals
    const lock = { resource: 'by name', owner: 'anna' }
    const granted = await acquireAs(database, lock)
    expect(granted).toMatchObject({ held: true, again: false })
    expect(await acquireAs(database, { ...lock, owner: 'ben' })).toMatchObject({ held: false })
    expect(await acquireAs(database, lock)).toMatchObject({ again: true, fencingToken: granted.fencingToken })
    expect(await extendAs(database, { ...lock, leaseMs: 1000 })).toBe(true)
    expect(await releaseAs(database, { ...lock, owner: 'ben' })).toBe(false)
    expect(await releaseAs(database, lock)).toBe(true)
    expect(await releaseAs(database, lock)).toBe(false)
    await expect(acquireAs(database, { ...lock, owner: '' })).rejects.toMatchObject({ field: 'owner' })
  })
})
