import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { CliProject } from '../cli-project.ts'

let project: CliProject
let db: TestDatabase

beforeAll(async () => {
  project = new CliProject()
  db = await createDatabase()
}, 120_000)
afterAll(async () => {
  await db.drop()
  await project[Symbol.asyncDispose]()
})

const run = async (...args: string[]) => await project.run(['keys', ...args, '--database', db.url])

describe('holdfast keys', () => {
  it('sets, shows, lists and deletes keys, and tells their history', async () => {
    const set = await run('set', 'flags/new', 'on', '--ttl-ms', '60000')
    const refused = await run('set', 'flags/new', 'off', '--if-absent')
    const again = JSON.parse(
      (await run('set', 'flags/new', 'off', '--if-revision', '0', '--json')).stdout,
    ) as object
    const shown = await run('get', 'flags/new')
    const old = JSON.parse((await run('get', 'flags/new', '--revision', '0', '--json')).stdout) as object
    const listed = JSON.parse((await run('list', '--bucket', 'flags', '--json')).stdout) as object
    const table = await run('list', 'fl', '--limit', '1')
    const deleted = await run('delete', 'flags/new')
    const missing = await run('get', 'flags/new')
    const twice = await run('delete', 'flags/new')
    const history = await run('history', 'flags/new')

    expect(set.stdout).toBe('set: revision 0\n')
    expect(refused.code).toBe(1)
    expect(refused.stdout).toBe('not set: it is on, revision 0\n')
    expect(again).toMatchObject({ ok: true, revision: '1', expiresAt: null })
    expect(shown.stdout).toMatch(/^off\nrevision 1, set .*Z\n$/)
    expect(old).toMatchObject({ key: 'flags/new', revision: '0', text: 'on', base64: 'b24=' })
    expect(listed).toMatchObject({ entries: [{ key: 'flags/new', text: 'off' }], next: null })
    expect(table.stdout).toMatch(/^key +revision +value/)
    expect(deleted.stdout).toBe('deleted: revision 2\n')
    expect(missing.code).toBe(1)
    expect(missing.stderr).toContain('there is no key "flags/new"')
    expect(twice.stderr).toContain('its newest revision is 2')
    expect(history.stdout).toMatch(/2 +deleted.*\n +1 +off.*\n +0 +on/)
  })

  it('shows no control characters of a value, and bytes as they are', async () => {
    await db.sql(
      `select holdfast.key_set('', false, 'raw', '\\x1b5b324a'::bytea, null, null, null, null, null, null)`,
    )
    await db.sql(
      `select holdfast.key_set('', false, 'bytes', '\\xfffe'::bytea, null, null, null, null, null, null)`,
    )
    const raw = await run('get', 'raw')
    const bytes = await run('get', 'bytes')

    expect(raw.stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
    expect(bytes.stdout).toMatch(/^\\xfffe\n/)
    expect(JSON.parse((await run('get', 'bytes', '--json')).stdout)).toMatchObject({
      text: null,
      base64: '//4=',
    })
  })

  it('prints changes as they are committed, a document a line, until it is interrupted', async () => {
    await db.sql(`select holdfast.key_set('', false, 'w/a', 'one', null, null, null, null, null, null)`)
    await using watching = project.start([
      'keys',
      'watch',
      'w/',
      '--from',
      '0',
      '--json',
      '--database',
      db.url,
    ])
    await watching.says('"text": "one"')
    await db.sql(`select holdfast.key_delete('', false, 'w/a', null, null)`)
    await watching.says('"deleted"')
    watching.signal('SIGINT')
    const { code, stdout } = await watching.ended

    expect(code).toBe(0)
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(lines).toMatchObject([
      { kind: 'set', key: 'w/a', revision: '0', place: expect.any(String) },
      { kind: 'deleted', key: 'w/a', revision: '1' },
    ])
  })

  it('refuses what cannot be right with the option that is wrong', async () => {
    const revision = await run('get', 'x', '--revision', 'one')
    const instant = await run('get', 'x', '--as-of', 'yesterday')
    const key = await run('set', '__holdfast:x', 'y')

    expect([revision.code, instant.code, key.code]).toEqual([2, 2, 2])
    expect(revision.stderr).toContain('--revision must be a whole number')
    expect(instant.stderr).toContain('--as-of must be an instant')
    expect(key.stderr).toContain('reserved')
  })
})
