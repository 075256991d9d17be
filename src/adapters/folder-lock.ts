import { randomUUID } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { FolderLockedError } from '../base/errors.ts'

/** The right of this process to open a folder. */
export interface FolderLock {
  /** Gives the right back. A second call does nothing. */
  release(): void
}

const RELEASED = 'released'
const NUMBERED = /^\d+$/

/**
 * Locks `folder` for this process. PGlite itself does not, and a second process destroys the data.
 *
 * Beside the folder, `<folder>.lock/` holds numbered files; only the one with the highest number counts. It names
 * its holder by process id and start time, or says `released`. To take the lock is to create the next number with
 * its content in one step (`link`), which only one process can. The highest file is never deleted, so a number
 * never comes twice, and a process that looked too early finds its number taken, or a higher one, and looks again.
 *
 * A holder that was killed is recognised by its process id being free or in use since another time. Debt: a
 * holder in another container (another list of processes) on the same disk looks dead.
 *
 * @throws {FolderLockedError} A living process holds it, this one included.
 */
export function lockFolder(folder: string): FolderLock {
  fs.mkdirSync(folder, { recursive: true })
  const real = fs.realpathSync(folder)
  const directory = `${real}.lock`
  fs.mkdirSync(directory, { recursive: true })
  const content = `${process.pid} ${startTimeOf(process.pid) ?? ''}\n`
  while (true) {
    const top = highest(directory)
    const holder = top === 0 ? undefined : livingHolder(path.join(directory, String(top)))
    if (holder !== undefined) throw new FolderLockedError({ folder: real, pid: holder })
    const own = top + 1
    if (!createOnce(directory, own, content)) continue
    // A number below the highest can be free again: then the lock went to others between our look and this.
    if (highest(directory) !== own) {
      fs.rmSync(path.join(directory, String(own)), { force: true })
      continue
    }
    for (const name of numbers(directory)) {
      if (name < own) fs.rmSync(path.join(directory, String(name)), { force: true })
    }
    return held(path.join(directory, String(own)))
  }
}

function held(file: string): FolderLock {
  let released = false
  const release = (): void => {
    if (released) return
    released = true
    process.removeListener('exit', release)
    try {
      fs.writeFileSync(file, `${RELEASED}\n`)
    } catch {
      // The folder was removed, and the lock with it; or it stays ours until this process ends.
    }
  }
  process.on('exit', release)
  return { release }
}

/** Creates a numbered file together with its content. Gives false if another process was first. */
function createOnce(directory: string, number: number, content: string): boolean {
  const draft = path.join(directory, `draft-${randomUUID()}`)
  fs.writeFileSync(draft, content)
  try {
    fs.linkSync(draft, path.join(directory, String(number)))
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  } finally {
    fs.rmSync(draft, { force: true })
  }
}

function numbers(directory: string): readonly number[] {
  return fs
    .readdirSync(directory)
    .filter((name) => NUMBERED.test(name))
    .map(Number)
}

function highest(directory: string): number {
  return Math.max(0, ...numbers(directory))
}

/** The process that holds the lock in `file`; `undefined` if none does, or it is dead. */
function livingHolder(file: string): number | undefined {
  let content: string
  try {
    content = fs.readFileSync(file, 'utf8')
  } catch (error) {
    // Deleted since: a higher number exists, and the caller's own will turn out not to be the highest.
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
  const [, pid, startTime] = /^(\d+) (.*)$/m.exec(content) ?? []
  if (pid === undefined || !isAlive(Number(pid))) return undefined
  const current = startTimeOf(Number(pid))
  const reused = startTime !== '' && current !== undefined && current !== startTime
  return reused ? undefined : Number(pid)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it lives, under another user.
    return codeOf(error) === 'EPERM'
  }
}

/** When the process started, in ticks since boot; `undefined` where the system does not tell (not Linux). */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field, the name, may itself hold blanks and brackets: count from its end.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    // No /proc here: then a living process id is taken for the holder.
    return undefined
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}
