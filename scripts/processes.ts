import fs from 'node:fs'

/** What Linux tells of processes, and the ways to end one that was started here. */

const POLL_MS = 10

/** Immediate shutdown of a postmaster, seen through; SIGKILL for it and its children if that takes over two seconds. */
export function endNow(pid: number): void {
  sendSignal(pid, 'SIGCONT')
  sendSignal(pid, 'SIGQUIT')
  const until = performance.now() + 2_000
  while (isAlive(pid) && performance.now() < until) sleepBlocking(POLL_MS)
  if (!isAlive(pid)) return
  for (const child of [...childrenOf(pid), pid]) sendSignal(child, 'SIGKILL')
}

function sleepBlocking(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

export async function waitUntil(holds: () => boolean, deadlineMs: number, otherwise: string): Promise<void> {
  const until = performance.now() + deadlineMs
  while (!holds()) {
    if (performance.now() > until) throw new Error(`${otherwise} after ${deadlineMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

/** A zombie counts as gone: it is dead, and whoever must reap it may be the one who waits here. */
export function isAlive(pid: number): boolean {
  const [state] = processFields(pid)
  return state !== undefined && state !== 'Z'
}

/** Instant a process started, in clock ticks since boot: with the id it names one process. */
export function startTime(pid: number): string | undefined {
  return processFields(pid)[19]
}

export function childrenOf(parent: number): readonly number[] {
  const all = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return all.map(Number).filter((pid) => processFields(pid)[1] === String(parent))
}

/** Fields of /proc/<pid>/stat from the third (state) on; none if there is no such process. */
function processFields(pid: number): readonly string[] {
  const stat = readText(`/proc/${pid}/stat`)
  // The second field is the program's name in parentheses, with anything in it.
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

export function commandLine(pid: number): string {
  return readText(`/proc/${pid}/cmdline`)
}

/** The text of `file`, empty if there is none. */
export function readText(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ESRCH') return ''
    throw error
  }
}

export function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
