import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FolderLockedError } from '../base/errors.ts'
import { lockFolder } from './folder-lock.ts'

let root: string
let folder: string
const children: ChildProcess[] = []

beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-lock-'))
  folder = path.join(root, 'db')
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  fs.rmSync(root, { recursive: true, force: true })
})

/** A process that tries for the lock, tells what became of it, and then waits. */
async function contender(): Promise<{
  readonly child: ChildProcess
  readonly got: boolean
  readonly pid?: number
}> {
  const program = path.join(root, 'contender.ts')
  fs.writeFileSync(
    program,
    `import { lockFolder } from ${JSON.stringify(path.resolve('src/adapters/folder-lock.ts'))}
     try { lockFolder(process.argv[2]!); process.send!({ got: true }) } catch (error) { process.send!({ got: false, pid: (error as { pid: number }).pid }) }
     setInterval(() => {}, 1000)
     process.on('message', () => process.exit(0))`,
  )
  const child = fork(program, [folder], { execArgv: ['--import', 'tsx'] })
  children.push(child)
  const [message] = (await once(child, 'message')) as [{ got: boolean; pid?: number }]
  return { child, ...message }
}

describe('locking a folder', () => {
  it('lets one in at a time, and the next after a release', () => {
    const lock = lockFolder(folder)

    expect(() => lockFolder(path.join(root, '.', 'db'))).toThrow(FolderLockedError)
    expect(() => lockFolder(folder)).toThrow(expect.objectContaining({ pid: process.pid }))
    lock.release()
    lock.release()
    const next = lockFolder(folder)
    expect(() => lockFolder(folder)).toThrow(FolderLockedError)
    next.release()
  })

  it('sees through symbolic links', () => {
    const lock = lockFolder(folder)
    fs.symlinkSync(folder, path.join(root, 'link'))

    expect(() => lockFolder(path.join(root, 'link'))).toThrow(FolderLockedError)
    lock.release()
  })

  it('takes over from a process that was killed, and names one that lives', async () => {
    const { child, got } = await contender()

    expect(got).toBe(true)
    expect(() => lockFolder(folder)).toThrow(expect.objectContaining({ pid: child.pid }))
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(() => lockFolder(folder).release()).not.toThrow()
  }, 30_000)

  it('is free after an ordinary exit', async () => {
    const { child } = await contender()
    child.send('exit')
    await once(child, 'exit')

    expect(() => lockFolder(folder).release()).not.toThrow()
  }, 30_000)

  it('does not take a reused process id for the holder', () => {
    fs.mkdirSync(`${folder}.lock`, { recursive: true })
    fs.writeFileSync(path.join(`${folder}.lock`, '7'), `${process.pid} 1\n`)

    lockFolder(folder).release()
    expect(fs.readdirSync(`${folder}.lock`)).toEqual(['8'])
  })

  it('lets exactly one of many processes in after a crash', async () => {
    fs.mkdirSync(`${folder}.lock`, { recursive: true })
    fs.writeFileSync(path.join(`${folder}.lock`, '1'), '999999999 1\n')

    const answers = await Promise.all(Array.from({ length: 6 }, () => contender()))

    expect(answers.filter(({ got }) => got)).toHaveLength(1)
  }, 60_000)
})
