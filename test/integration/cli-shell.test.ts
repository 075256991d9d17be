import fs from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { root } from '../support/migrated.ts'
import { CliProject } from './cli-project.ts'

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

async function shell(database: string, input: string, ...args: string[]) {
  return await project.run(['shell', '--database', database, ...args], { input })
}

const SESSION = `# what the recipes do
lock jobs/1/lock 5000
param @status jobs/1/status
let status = get @status
if status = "completed" then
  return "already completed"
end
set @status "completed" norev
let status = get @status
return status
set many 1 \\
set more 2 \\
return "both"
set @status "again" nx
set other "value" ex 60000
delete other
get other
scan by prefix "jobs"
return concat("a", "b")
sequence create invoices initial=1000
sequence next invoices key=order-1
sequence next invoices key=order-1
sequence reserve invoices 3
sequence get invoices
sequences in
history other
extend-lock jobs/1/lock 9000
unlock jobs/1/lock
get-lock jobs/1/lock
elock jobs/2
locks
sequence delete invoices
`

const ANSWERS = [
  'f1 locked',
  '@status set',
  'not found',
  'r0 set',
  'r0 completed',
  'both',
  'r0 not set',
  'r0 set',
  'r1 deleted',
  'not found',
  'r0 jobs/1/status completed',
  'ab',
  'created, the first value is 1001',
  '1001',
  '1001',
  '1002..1004',
  'current 1004, increment 1',
  'invoices  current 1004, increment 1',
  'r1 AT deleted',
  'r0 AT value',
  'f1 extended',
  'f1 unlocked',
  'free',
  'f2 locked',
  'no locks',
  'deleted',
]

function withoutTimes(text: string): string[] {
  return text
    .trimEnd()
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, 'AT')
    .split('\n')
}

describe('holdfast shell with piped input', () => {
  it('runs a session line by line, on PostgreSQL, and releases its locks', async () => {
    const { code, stdout, stderr } = await shell(db.url, SESSION)
    expect(stderr).toBe('')
    expect(withoutTimes(stdout)).toEqual(ANSWERS)
    expect(code).toBe(0)
    expect(await db.sql('select from holdfast.lock_ephemeral where owner is not null')).toEqual([])
  })

  it('answers as the guide shows it', async () => {
    await using fresh = await createDatabase()
    const guide = fs.readFileSync(path.join(root, 'docs/guides/shell.md'), 'utf8')
    const shown = /holdfast> [\s\S]*?(?=```)/.exec(guide)?.[0] ?? ''
    const prompt = /^(?:holdfast| {5}\.\.\.)> /
    const lines = shown.trimEnd().split('\n')
    const inputs = lines.filter((line) => prompt.test(line)).map((line) => line.replace(prompt, ''))
    expect(inputs.length).toBeGreaterThan(10)
    const { stdout, stderr } = await shell(fresh.url, `${inputs.join('\n')}\n`, '--continue')
    const answers = lines
      .filter((line) => !prompt.test(line))
      .map((line) => line.replace(/ {2}[\d.]+ m?s$/, ''))
      .join('\n')
    // Errors go to a stream of their own, and the guide has them last.
    expect(withoutTimes(stdout + stderr)).toEqual(withoutTimes(answers))
  })

  it('runs the same on an embedded database in memory, which it makes', async () => {
    const { code, stdout, stderr } = await shell('pglite:memory:', SESSION)
    expect(stderr).toBe('')
    expect(withoutTimes(stdout)).toEqual(ANSWERS)
    expect(code).toBe(0)
  })

  it("uses the app's database, a folder too", async () => {
    project.write(
      'app.ts',
      `import { defineApp } from 'holdfast'\nexport default defineApp({ name: 'shell', database: 'pglite:./data', jobs: [] })\n`,
    )
    expect((await project.run(['migrate'])).code).toBe(0)
    const { stdout } = await project.run(['shell'], { input: 'lock a\nset k "v"\nget k\n' })
    expect(stdout).toBe('f1 locked\nr0 set\nr0 v\n')
  })

  it('ends at the first error with exit code 1 and the place, or goes on and ends with 1', async () => {
    const input = 'set a 1\nset b ~\nset c 3\nlokc x\n'
    const ended = await shell(db.url, input, '--tenant', 'one')
    expect(ended).toMatchObject({ code: 1, stdout: 'r0 set\n' })
    expect(ended.stderr.split('\n').slice(0, 3)).toEqual([
      'error: line 1, column 7: unexpected character "~"',
      '  set b ~',
      '        ^',
    ])
    const went = await shell(db.url, input, '--tenant', 'two', '--continue')
    expect(went).toMatchObject({ code: 1, stdout: 'r0 set\nr0 set\n' })
    expect(went.stderr).toContain('did you mean "lock"?')
  })

  it('runs a file as one script: all of it, or nothing', async () => {
    const file = project.write('both.hf', 'set first 1\nset second @x # a parameter\n')
    const missing = await shell(db.url, `run ${file}\n`, '--tenant', 'file')
    expect(missing.code).toBe(1)
    expect(missing.stderr).toContain('  set second @x # a parameter\n  ^')
    const { stdout } = await shell(
      db.url,
      `param @x 2\nget first\nrun "${file}"\nget first\n`,
      '--tenant',
      'file',
    )
    expect(stdout).toBe('@x set\nnot found\nr0 set\nr0 1\n')
    expect((await shell(db.url, 'run nowhere.hf\n')).stderr).toContain('"nowhere.hf" cannot be read')
  })

  it('watches until it is told to stop, and leaves no lock behind then', async () => {
    await using watching = project.start(['shell', '--database', db.url], {
      input: 'lock held\nwatch flags/\nset never 1\n',
    })
    await watching.says('watching')
    await shell(db.url, 'set `flags/a` "on"\nset `other` 1\ndelete `flags/a`\n')
    await watching.says('deleted')
    watching.signal('SIGTERM')
    const { code, stdout } = await watching.ended
    expect(stdout).toMatch(/^f\d+ locked\nwatching; .*\nr0 set flags\/a on\nr1 deleted flags\/a\n$/)
    expect(code).toBe(130)
    expect(await db.sql(`select from holdfast.lock where resource = 'held' and owner is not null`)).toEqual(
      [],
    )
  })

  it('refuses what it cannot do', async () => {
    expect((await shell(db.url, '', '--json')).stderr).toContain('no --json')
    expect((await shell(db.url, '', '--tenant', '')).code).toBe(2)
    expect((await shell(db.url, 'exit\nset a ~\n')).code).toBe(0)
  })
})

/** Debian has it in a package that cannot be taken out. */
const GIVES_TERMINAL = '/usr/bin/script'

describe.skipIf(!fs.existsSync(GIVES_TERMINAL))('holdfast shell at a terminal', () => {
  it('has a prompt, colours and times, and keeps what was typed for this user alone', async () => {
    const state = path.join(project.folder, 'state')
    const { code, stdout } = await project.run(['shell', '--database', db.url, '--tenant', 'tty'], {
      input: `set k "v"\rset url "postgres://me:s3cret@host/db"\rget k\rexit\r`,
      env: { XDG_STATE_HOME: state, TERM: 'xterm', NO_COLOR: undefined },
      under: (command) => [GIVES_TERMINAL, '-qec', command.map((word) => `'${word}'`).join(' '), '/dev/null'],
    })
    const shown = stdout.replaceAll('\u001b', '^')
    expect(shown).toContain('holdfast> ')
    expect(shown).toMatch(/\^\[36mr0\^\[39m \^\[32mset\^\[39m {2}\^\[2m[\d.]+ m?s\^\[22m/)
    expect(shown).toMatch(/\^\[36mr0\^\[39m v {2}/)
    expect(code).toBe(0)
    const file = path.join(state, 'holdfast/history')
    expect(fs.readFileSync(file, 'utf8')).toBe('set k "v"\nget k\nexit\n')
    expect(fs.statSync(file).mode & 0o777).toBe(0o600)
  })

  it('is without colours where NO_COLOR says so', async () => {
    const { stdout } = await project.run(['shell', '--database', db.url, '--tenant', 'plain'], {
      input: 'set k 1\rexit\r',
      env: { HOLDFAST_HISTORY: '', TERM: 'xterm', NO_COLOR: '1' },
      under: (command) => [GIVES_TERMINAL, '-qec', command.map((word) => `'${word}'`).join(' '), '/dev/null'],
    })
    expect(stdout).toMatch(/^r0 set {2}[\d.]+ m?s\r$/m)
  })
})
