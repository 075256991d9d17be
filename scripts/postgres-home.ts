import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { isReachable, ownedDir, type ServerUser, shortTempDir } from './owned-folders.ts'
import { commandLine, endNow, startTime } from './processes.ts'

/** Folder of one server: `data/`, `server.log` and, where the path is short enough, `sockets/`. */
export interface Home {
  readonly dir: string
  readonly socketDir: string
  /** True if we made it and remove it. */
  readonly temporary: boolean
}

/** A unix socket's path holds at most 107 bytes; the file's name takes 20 of them. */
const MAX_SOCKET_DIR_BYTES = 85

/** What is written down about a running server, so that it can be found once its owner is gone. */
interface OwnerRecord extends Home {
  readonly ownerPid: number
  readonly ownerStart: string | undefined
  /** 0 while there is none. */
  readonly postmasterPid: number
}

/** Where homes are, one folder for each user: a name that others cannot have taken is checked by its owner. */
function homesDir(): string {
  return ownedDir(path.join(shortTempDir(), `holdfast-pg-${os.userInfo().uid}`))
}

export function createHome(dir: string | undefined, user: ServerUser): Home {
  const homes = homesDir()
  const home = dir === undefined ? fs.mkdtempSync(path.join(homes, 's')) : path.resolve(dir)
  fs.mkdirSync(home, { recursive: true })
  const socketDir =
    Buffer.byteLength(home) + '/sockets'.length <= MAX_SOCKET_DIR_BYTES
      ? path.join(home, 'sockets')
      : fs.mkdtempSync(path.join(homes, 'k'))
  for (const folder of [path.join(home, 'data'), socketDir]) {
    fs.mkdirSync(folder, { recursive: true })
    if (user.uid !== undefined) fs.chownSync(folder, user.uid, user.gid)
  }
  fs.chmodSync(path.join(home, 'data'), 0o700)
  fs.chmodSync(socketDir, 0o755)
  if (dir === undefined) fs.chmodSync(home, 0o755)
  if (user.uid !== undefined && !isReachable(home, user)) {
    throw new Error(
      `PostgreSQL runs as user ${user.uid}, who cannot enter ${home}: choose a folder open to all`,
    )
  }
  return { dir: home, socketDir, temporary: dir === undefined }
}

/** Beside the homes rather than inside: a home of the caller's is found again too. */
function ownerFile(home: Home): string {
  return path.join(homesDir(), `${home.dir.replaceAll(/[^A-Za-z0-9]/g, '_').slice(-150)}.owner.json`)
}

export function writeOwner(home: Home, postmasterPid: number): void {
  const owner: OwnerRecord = {
    ...home,
    postmasterPid,
    ownerPid: process.pid,
    ownerStart: startTime(process.pid),
  }
  fs.writeFileSync(ownerFile(home), JSON.stringify(owner))
}

export function removeHome(home: Home): void {
  for (const dir of home.temporary ? [home.dir, home.socketDir] : [home.socketDir]) {
    fs.rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
  }
  fs.rmSync(ownerFile(home), { force: true })
}

/** Ends servers whose owner was SIGKILLed, and removes what is theirs. Leaves everybody else's alone. */
export function reapLeftovers(): number {
  const homes = homesDir()
  let reaped = 0
  for (const name of fs.readdirSync(homes)) {
    if (!name.endsWith('.owner.json')) continue
    const owner = readOwner(path.join(homes, name))
    if (owner === undefined || startTime(owner.ownerPid) === owner.ownerStart) continue
    const { postmasterPid, dir } = owner
    if (commandLine(postmasterPid).includes(`${dir}/data\0`)) {
      endNow(postmasterPid)
      reaped += 1
    }
    removeHome(owner)
  }
  return reaped
}

function readOwner(file: string): OwnerRecord | undefined {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')) as OwnerRecord
  } catch {
    // Removed or half written by its owner, who is alive then.
    return undefined
  }
}
