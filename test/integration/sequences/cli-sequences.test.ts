import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { CliProject } from '../cli-project.ts'

let project: CliProject
let db: TestDatabase

beforeAll(async () => {
  project = new CliProject()
  db = await createDatabase()
})
afterAll(async () => {
  await project[Symbol.asyncDispose]()
  await db.drop()
})

async function run(...args: string[]) {
  return await project.run(['sequences', ...args, '--database', db.url])
}

describe('holdfast sequences', () => {
  it('creates, draws, shows and deletes, each number digit for digit', async () => {
    expect((await run()).stdout).toBe('no sequences\n')
    const created = await run('create', 'invoices', '--initial=-9223372036854775808', '--max', '5')
    expect(created.stdout.split('\n').slice(0, 4)).toEqual([
      '"invoices"',
      '  current    -9223372036854775808',
      '  initial    -9223372036854775808',
      '  increment  1',
    ])
    expect(await run('next', 'invoices')).toMatchObject({ code: 0, stdout: '-9223372036854775807\n' })
    const reserved = await run('reserve', 'invoices', '--count', '3', '--idempotency-key', 'k')
    expect(reserved.stdout).toBe('-9223372036854775806..-9223372036854775804\n')
    const again = await run('reserve', 'invoices', '--count', '3', '--idempotency-key', ' k ', '--json')
    expect(JSON.parse(again.stdout)).toEqual({
      first: '-9223372036854775806',
      last: '-9223372036854775804',
      increment: '1',
      count: '3',
    })
    expect(JSON.parse((await run('get', 'invoices', '--json')).stdout)).toMatchObject({
      tenant: '',
      name: 'invoices',
      current: '-9223372036854775804',
      max: '5',
      revision: '2',
    })
    expect((await run('delete', 'invoices')).stdout).toBe('"invoices" is deleted\n')
    expect(await run('get', 'invoices')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('there is no sequence "invoices"'),
    })
    expect((await run('delete', 'invoices')).code).toBe(1)
  })

  it('refuses what exists, what is unknown and what cannot be right, and says so', async () => {
    expect((await run('create', 'once', '--tenant', 'acme')).code).toBe(0)
    expect(await run('create', 'once', '--tenant', 'acme')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('sequence "once" of tenant "acme" exists'),
    })
    expect((await run('create', 'once', '--tenant', 'acme', '--keep')).code).toBe(0)
    expect((await run('next', 'once')).stderr).toContain('there is no sequence "once"')
    expect(await run('create', 'bad', '--increment', '0')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('increment must be from 1'),
    })
    expect((await run('create', 'bad', '--max', '1e3')).stderr).toContain('max must be a whole number')
    expect((await run('reserve', 'bad')).code).toBe(2)
  })

  it('lists by pages, with nothing that a terminal would obey', async () => {
    for (const name of ['b', 'a', 'c']) await run('create', name, '--tenant', 'pages')
    await db.sql(
      `insert into holdfast.sequence (tenant, name, initial, current, increment) values ('pages', E'd\\x1b[2J', 0, 0, 1)`,
    )
    const first = JSON.parse((await run('list', '--tenant', 'pages', '--limit', '3', '--json')).stdout) as {
      sequences: { name: string }[]
      next: string
    }
    expect(first.sequences.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
    const { stdout } = await run('list', '--tenant', 'pages', '--after', first.next)
    expect(stdout).toContain('d\\u001b[2J')
    expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
  })
})
