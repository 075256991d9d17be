import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { packageProgram } from '../../base/package-files.ts'
import type { KillMessage, KillOrder } from './messages.ts'

/** What a child told, until it was done or killed. */
export interface ChildRun {
  readonly steps: readonly string[]
  readonly attempts: number
  readonly wasKilled: boolean
}

/**
 * Runs a worker in a process of its own until nothing is left to do, or, if the order has a target, until it stands there; then it is
 * killed by SIGKILL.
 *
 * @throws {Error} It failed, or was not done within `timeoutMs`; it is killed then too.
 */
export async function runChild(order: KillOrder, timeoutMs: number): Promise<ChildRun> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program()], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  const steps: string[] = []
  let attempts = 0
  let end: KillMessage | undefined
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
  child.on('message', (message: KillMessage) => {
    if (message.kind === 'attempt') attempts += 1
    else if (message.kind === 'step') steps.push(message.step)
    else end = message
    if (message.kind === 'here') child.kill('SIGKILL')
  })
  const ended = new Promise<void>((resolve, reject) => {
    child.once('close', () => resolve())
    child.once('error', reject)
  })
  child.send(order)
  await ended
  clearTimeout(timer)
  if (end === undefined) throw new Error(`a worker of the crash test was not done within ${timeoutMs} ms`)
  if (end.kind === 'failed') throw new Error(`a worker of the crash test failed: ${end.message}`)
  return { steps, attempts, wasKilled: end.kind === 'here' }
}

/** App files may be TypeScript, which Node 20 cannot read: a loader comes first, as for `holdfast worker`. */
function program(): string {
  const resolved = createRequire(import.meta.url).resolve('tsx/esm/api')
  const loader = pathToFileURL(resolved.replace(/\.cjs$/, '.mjs')).href
  const entry = packageProgram('testing/kill/kill-program').href
  return `const { register } = await import(${JSON.stringify(loader)}); register(); await import(${JSON.stringify(entry)})`
}
