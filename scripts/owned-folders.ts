import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Whom the server runs as; nothing said where it is ourselves. */
export type ServerUser =
  | { readonly uid: number; readonly gid: number }
  | { readonly uid?: undefined; readonly gid?: undefined }

export function shortTempDir(): string {
  const dir = fs.realpathSync(os.tmpdir())
  return Buffer.byteLength(dir) <= 30 && isReachable(dir, { uid: 65_534, gid: 65_534 }) ? dir : '/tmp'
}

/** Makes `dir` for us alone to write; refuses one that another user has put there. */
export function ownedDir(dir: string): string {
  fs.mkdirSync(dir, { recursive: true, mode: 0o755 })
  const found = fs.lstatSync(dir)
  if (!found.isDirectory() || found.uid !== os.userInfo().uid)
    throw new Error(`${dir} is not ours: remove it`)
  fs.chmodSync(dir, 0o755)
  return dir
}

/** True if `user` may read and enter `file` and enter each folder above it. */
export function isReachable(file: string, user: ServerUser): boolean {
  if (user.uid === undefined) return true
  const target = fs.realpathSync(file)
  for (let at = target; ; at = path.dirname(at)) {
    const { mode, uid, gid } = fs.statSync(at)
    const bits = uid === user.uid ? mode >> 6 : gid === user.gid ? mode >> 3 : mode
    const needed = at === target ? 0o5 : 0o1
    if ((bits & needed) !== needed) return false
    if (at === path.dirname(at)) return true
  }
}
