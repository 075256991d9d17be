import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { openMigratedPglite } from './backends.ts'
import { createDatabase } from './database.ts'
import { eventually, nextEvent } from './eventually.ts'
import { startProgram } from './processes.ts'
import { mentions } from './wire.ts'

describe('createDatabase', () => {
  it('gives each test a database of its own, and drops it although somebody is connected', async () => {
    await using watcher = await createDatabase({ migrated: false })
    const exists = (name: string) => watcher.sql('select from pg_database where datname = $1', [name])
    const [one, two] = await Promise.all([createDatabase(), createDatabase()])
    await one.sql('create table mine (n int)')
    await one.connect()

    expect(await two.sql(`select to_regclass('public.mine') as mine`)).toEqual([{ mine: null }])
    await Promise.all([one.drop(), two.drop()])
    expect(await exists(one.name)).toEqual([])
  })
})

describe('openMigratedPglite', () => {
  it('gives instances that share nothing', async () => {
    const one = await openMigratedPglite()
    await one.exec('create table mine (n int)')
    const two = await openMigratedPglite()
    const { rows } = await two.query(`select to_regclass('public.mine') as mine`)
    expect(rows).toEqual([{ mine: null }])
    await Promise.all([one.close(), two.close()])
  })
})

describe('eventually', () => {
  it('gives what was awaited, and takes a throw for "not yet"', async () => {
    let looks = 0
    const found = await eventually('the third look', () => {
      looks += 1
      if (looks === 1) throw new Error('not there')
      return looks === 3 && 'here'
    })
    expect(found).toBe('here')
  })

  it('says what was awaited and what was seen last', async () => {
    const waiting = eventually('two rows', () => Promise.resolve(null), { deadlineMs: 50 })
    await expect(waiting).rejects.toThrow('not within 50 ms: two rows; last seen: null')
    const failing = eventually('two rows', () => Promise.reject(new Error('no table')), { deadlineMs: 50 })
    await expect(failing).rejects.toThrow('the last look threw Error: no table')
  })
})

describe('nextEvent', () => {
  it('waits for the one that is meant, and leaves no listener', async () => {
    const emitter = new EventEmitter<{ step: [number] }>()
    const third = nextEvent(emitter, 'step', { where: (n) => n === 3 })
    for (const n of [1, 2, 3]) emitter.emit('step', n)
    expect(await third).toEqual([3])
    expect(emitter.listenerCount('step')).toBe(0)
  })

  it('says how many others came', async () => {
    const emitter = new EventEmitter<{ step: [number] }>()
    const fourth = nextEvent(emitter, 'step', { where: (n) => n === 4, deadlineMs: 50 })
    emitter.emit('step', 1)
    await expect(fourth).rejects.toThrow('event "step"; 1 others')
  })
})

describe('startProgram', () => {
  it('carries messages both ways, and stands still while paused', async () => {
    await using echo = startProgram('test/support/programs/echo.ts')
    await echo.message('ready')
    echo.send({ kind: 'say', n: 1 })
    expect(await echo.message('said', { where: ({ n }) => n === 1 })).toEqual({ kind: 'said', n: 1 })

    echo.pause()
    echo.send({ kind: 'say', n: 2 })
    await expect(echo.message('said', { where: ({ n }) => n === 2, deadlineMs: 200 })).rejects.toThrow(
      'no message',
    )
    echo.resume()
    expect(await echo.message('said', { where: ({ n }) => n === 2 })).toMatchObject({ n: 2 })
    expect(await echo.kill()).toEqual({ code: null, signal: 'SIGKILL' })
  })

  it('says what a program wrote that ended too early', async () => {
    await using echo = startProgram('test/support/programs/echo.ts', { args: ['fail'] })
    await expect(echo.message('ready')).rejects.toThrow(/no message "ready".*asked to fail/s)
    expect(await echo.exited).toEqual({ code: 1, signal: null })
  })
})

describe('mentions', () => {
  it('matches whole words whatever their case, and comments as they are', () => {
    expect(mentions('commit', 'COMMIT')).toBe(true)
    expect(mentions('set synchronous_commit = on', 'COMMIT')).toBe(false)
    expect(mentions('/* holdfast:claim_jobs */ select', '/* holdfast:claim_jobs */')).toBe(true)
    expect(mentions('/* holdfast:claim */ select', '/* holdfast:claim_jobs */')).toBe(false)
  })
})
