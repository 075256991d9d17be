import fs from 'node:fs'
import { childrenOf } from '../../scripts/processes.ts'

/** Ticks per second of /proc/<pid>/stat; 100 on every Linux that Node runs on. */
const TICKS = 100

/** CPU seconds of a process and its live children; of those that ended, what their parent has reaped. */
export function treeCpuSeconds(root: number): number {
  const ticks = childrenOf(root).reduce((sum, pid) => sum + ticksOf(pid, false), ticksOf(root, true))
  return ticks / TICKS
}

function ticksOf(pid: number, withReaped: boolean): number {
  const [user = 0, system = 0, reapedUser = 0, reapedSystem = 0] = statFields(pid).slice(11, 15).map(Number)
  return user + system + (withReaped ? reapedUser + reapedSystem : 0)
}

function statFields(pid: number): readonly string[] {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    // It ended between the listing and now; its time is then its parent's.
    return []
  }
}
