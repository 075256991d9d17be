import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { HISTORY_SIZE, History, historyFile, joined } from './history.ts'

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-history-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

let files = 0
function newFile(): string {
  files += 1
  return path.join(folder, `state-${files}`, 'history')
}

describe('the history of the shell', () => {
  it('is kept for the next shell, in a file that only its user can read', () => {
    const file = newFile()
    const first = new History(file)
    for (const input of ['set a 1', 'get a', 'get a', 'lock "ü"']) first.add(input)
    expect(new History(file).entries).toEqual(['set a 1', 'get a', 'lock "ü"'])
    expect(fs.statSync(file).mode & 0o777).toBe(0o600)
    expect(fs.statSync(path.dirname(file)).mode & 0o777).toBe(0o700)
  })

  it('becomes private again if somebody opened it up', () => {
    const file = newFile()
    new History(file).add('one')
    fs.chmodSync(file, 0o644)
    new History(file).add('two')
    expect(fs.statSync(file).mode & 0o777).toBe(0o600)
  })

  it('keeps out of the file what looks like a secret or begins with a blank, and has it for the arrow keys', () => {
    const file = newFile()
    const history = new History(file)
    const secrets = [
      `set url 'postgres://me:s3cret@host/db'`,
      `set note 'password=s3cret'`,
      ` set token 's3cret'`,
      `set h 'Authorization: Bearer s3cret-s3cret'`,
    ]
    for (const input of [...secrets, 'get url']) history.add(input)
    expect(fs.readFileSync(file, 'utf8')).toBe('get url\n')
    expect(history.entries).toEqual([...secrets, 'get url'])
  })

  it('is bounded, in memory and on disk', () => {
    const file = newFile()
    fs.mkdirSync(path.dirname(file), { recursive: true })
    const old = Array.from({ length: 2 * HISTORY_SIZE + 1 }, (_, n) => `get k${n}`)
    fs.writeFileSync(file, `${old.join('\n')}\n`)
    const history = new History(file)
    expect(history.entries).toEqual(old.slice(-HISTORY_SIZE))
    expect(fs.readFileSync(file, 'utf8').split('\n')).toHaveLength(HISTORY_SIZE + 1)
    history.add('newest')
    expect(history.entries).toHaveLength(HISTORY_SIZE)
    history.add('x'.repeat(10_000))
    expect(history.entries.at(-1)).toBe('newest')
  })

  it('has nothing in it that a terminal would obey', () => {
    const file = newFile()
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, 'get a\nget \u001b[2J\n')
    const history = new History(file)
    history.add('get \u0007')
    expect(history.entries).toEqual(['get a'])
  })

  it('is done without where there can be none', () => {
    const history = new History(path.join(folder, 'state-1', 'history', 'not-a-folder'))
    history.add('get a')
    expect(history.entries).toEqual(['get a'])
    expect(new History(undefined).entries).toEqual([])
  })
})

it('the file is where the user keeps state, or where it is said to be', () => {
  expect(historyFile({ XDG_STATE_HOME: '/state' })).toBe('/state/holdfast/history')
  expect(historyFile({ XDG_STATE_HOME: 'not/absolute' })).toMatch(/\.local\/state\/holdfast\/history$/)
  expect(historyFile({ HOLDFAST_HISTORY: '/h', XDG_STATE_HOME: '/state' })).toBe('/h')
  expect(historyFile({ HOLDFAST_HISTORY: '' })).toBeUndefined()
})

it('a script of several lines becomes one line that means the same', () => {
  const script = `let x = get k # the key\n\n  # only this\nif x = "# no comment" then\n  return 1\nend`
  expect(joined(script)).toBe('let x = get k if x = "# no comment" then return 1 end')
  expect(joined('get a # kept')).toBe('get a # kept')
})
