import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { CliProject } from '../cli-project.ts'

describe('holdfast script', () => {
  let project: CliProject
  let db: TestDatabase
  beforeAll(async () => {
    project = new CliProject()
    db = await createDatabase()
  }, 120_000)
  afterAll(async () => {
    await project[Symbol.asyncDispose]()
    await db.drop()
  })

  const run = async (text: string, ...args: string[]) => {
    project.write('a.script', text)
    return await project.run(['script', 'a.script', ...args, '--database', db.url])
  }

  it('runs a file with parameters and prints the value alone', async () => {
    const text = '# counts\nset @key @n\nlet n = get @key\nreturn n + 1\n'
    expect(await run(text, '--param', 'key=a=b', '--param=n=41')).toMatchObject({ code: 0, stdout: '42\n' })
  })

  it('runs standard input and prints one JSON document', async () => {
    const script = 'set `x/1` "one" ex 60000 set `x/2` "two\\n" get by bucket x'
    const printed = await project.run(['script', '-', '--json', '--database', db.url], { input: script })
    expect(JSON.parse(printed.stdout)).toMatchObject({
      type: 'get',
      values: [
        { key: 'x/1', value: 'one', revision: '0', expiresAt: expect.stringMatching(/^\d{4}-.*Z$/) },
        { key: 'x/2', value: 'two\n', revision: '0', expiresAt: null },
      ],
    })
    expect(await run('get by bucket x')).toMatchObject({ stdout: 'x/1\tone\nx/2\ttwo\n\n' })
    expect(await run('set `x/1` 1 nx')).toMatchObject({ code: 0, stdout: 'not set, revision 0\n' })
    expect(await run('get nothing', '--tenant', 't')).toMatchObject({ code: 0, stdout: 'does not exist\n' })
  })

  it('shows where a script is wrong, and ends with 2 for its text and 1 for its run', async () => {
    expect(await run('set k 1\nset k $\n')).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: 'error: line 2, column 7: unexpected character "$"\n  set k $\n        ^\n',
    })
    expect(await run('set k 1\n  throw "no stock"\n')).toEqual({
      code: 1,
      signal: null,
      stdout: '',
      stderr: 'error: no stock (thrown in line 2 of the script)\n    throw "no stock"\n    ^\n',
    })
    expect(await run('get k')).toMatchObject({ stdout: 'does not exist\n' })
    expect(await run('sleep 5000', '--timeout-ms', '10')).toMatchObject({ code: 1 })
  })

  it('refuses what it does not understand', async () => {
    for (const args of [
      ['--param', 'novalue'],
      ['--param', 'a=1', '--param', '@a=2'],
      ['--param', 'a b=1'],
      ['--timeout-ms', 'x'],
    ])
      expect(await run('return 1', ...args)).toMatchObject({ code: 2, stdout: '' })
    const missing = await project.run(['script', 'nowhere.script', '--database', db.url])
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be read') })
  })
})
