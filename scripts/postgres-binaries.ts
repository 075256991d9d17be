import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { isReachable, ownedDir, type ServerUser, shortTempDir } from './owned-folders.ts'
import { errorCode } from './processes.ts'

export const postgresVersions = [14, 16, 18] as const
export type PostgresVersion = (typeof postgresVersions)[number]

/** PostgreSQL refuses to run as root; it then runs as `postgres`, or as `nobody` where that does not exist. */
export function serverUser(): ServerUser {
  if (process.getuid?.() !== 0) return {}
  const users = fs.readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const wanted of ['postgres', 'nobody']) {
    const [name, , uid, gid] = users.find((line) => line.startsWith(`${wanted}:`))?.split(':') ?? []
    if (name !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('PostgreSQL does not run as root, and this system has neither a user postgres nor nobody')
}

/** Folder with `bin/`, `lib/` and `share/` that `user` can run: the package's own, or else a copy of it. */
export function prepareBinaries(version: PostgresVersion, user: ServerUser): string {
  const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
  const native = path.join(root, 'node_modules', `pg${version}bin`, 'native')
  if (!fs.existsSync(native))
    throw new Error(`PostgreSQL ${version} is not installed: ${native} is missing (npm ci)`)
  if (isReachable(path.join(native, 'bin', 'postgres'), user) && completeLinks(native)) return native
  return copyBinaries(native, version)
}

function copyBinaries(native: string, version: PostgresVersion): string {
  const { version: exact } = JSON.parse(fs.readFileSync(path.join(native, '../package.json'), 'utf8')) as {
    version: string
  }
  const copies = ownedDir(path.join(shortTempDir(), `holdfast-pg-bin-${os.userInfo().uid}`))
  const copy = path.join(copies, exact)
  if (fs.existsSync(copy)) return copy
  const making = fs.mkdtempSync(path.join(copies, `making-${version}-`))
  fs.cpSync(native, making, { recursive: true, verbatimSymlinks: true })
  completeLinks(making)
  const opened = spawnSync('chmod', ['-R', 'a+rX', making])
  if (opened.status !== 0) throw new Error(`cannot open ${making} to others: ${String(opened.stderr)}`)
  try {
    fs.renameSync(making, copy)
  } catch (error) {
    // Two starts copied at once: the other's is as good.
    fs.rmSync(making, { recursive: true, force: true })
    if (!fs.existsSync(copy)) throw error
  }
  return copy
}

/**
 * Makes the links that the package's install script makes, which `--ignore-scripts` leaves out.
 * Returns false if they are missing and the folder is not ours to write.
 */
function completeLinks(native: string): boolean {
  const links = JSON.parse(fs.readFileSync(path.join(native, 'pg-symlinks.json'), 'utf8')) as readonly {
    source: string
    target: string
  }[]
  for (const { source, target } of links) {
    const link = path.join(native, target.replace(/^native\//, ''))
    if (fs.existsSync(link)) continue
    try {
      fs.symlinkSync(path.basename(source), link)
    } catch (error) {
      const code = errorCode(error)
      if (code === 'EACCES' || code === 'EROFS' || code === 'EPERM') return false
      if (code !== 'EEXIST') throw error
    }
  }
  return true
}

export function initdb(bin: string, dataDir: string, user: ServerUser): void {
  const args = [
    '-D',
    dataDir,
    '-U',
    'postgres',
    '-A',
    'trust',
    '--no-sync',
    '--encoding=UTF8',
    '--locale=C.UTF-8',
  ]
  const made = spawnSync(path.join(bin, 'initdb'), args, { ...user, cwd: '/', env: serverEnvironment() })
  if (made.error) throw made.error
  if (made.status !== 0) throw new Error(`initdb failed: ${String(made.stderr)}`)
}

/** Nothing of the caller's: PGDATA, PGPORT and the like would change the server. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', TZ: 'UTC' }
}
