/**
 * `holdfast dev`: a parent that watches, and a child that is the application's whole backend.
 *
 * The child loads the app, migrates, runs a worker, and tells the parent each file it has loaded. When one of them
 * changes the parent asks the child to stop (a second time after two seconds, which aborts what runs), waits
 * for its end, and starts the next. A process of its own, rather than modules loaded anew in this one: nothing of
 * the former run is left, be it a timer, a connection, or the lock on the embedded database's folder.
 *
 * A child that fails, at loading or later, is not restarted before a file changes, unless it asks for that by its
 * exit code.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import { fileURLToPath } from 'node:url'
import { exitCodes } from './exit-codes.ts'
import { loadApp } from './load-app.ts'
import { type RunWorkerOptions, runWorker } from './run-worker.ts'
import { listenToSignals } from './signals.ts'

/** Environment variable by which a child knows that it is one. */
export const childMark = 'HOLDFAST_DEV_CHILD'

const EMBEDDED = 'pglite:./.holdfast'
const HURRY_MS = 2000
const WATCH_MS = 250
const SETTLE_MS = 100

/** The child's part: load, migrate, work until asked to stop. */
export async function runDevChild(
  file: string,
  log: Pick<RunWorkerOptions, 'level' | 'format' | 'color'>,
): Promise<number> {
  const orphaned = new AbortController()
  process.once('disconnect', () => orphaned.abort())
  const app = await loadApp(file, {
    onImport(url) {
      if (url.startsWith('file:') && !url.includes('/node_modules/'))
        process.send?.({ loaded: fileURLToPath(url.split('?')[0] ?? url) })
    },
  })
  await app.migrate()
  const code = await runWorker(app, { ...log, signal: orphaned.signal })
  if (process.connected) process.disconnect()
  return code
}

/** The parent's part: keep one child, until a signal. */
export async function runDevParent(): Promise<number> {
  const files = new Set<string>()
  let child: ChildProcess | undefined
  let isOver = false
  let wake: () => void = () => {}
  const changed = () => wake()

  const endSignals = listenToSignals({
    onStop: () => {
      isOver = true
      child?.kill('SIGTERM')
      wake()
    },
    onAbort: () => child?.kill('SIGTERM'),
    onEnd: () => {
      child?.kill('SIGKILL')
      process.exit(exitCodes.interrupted)
    },
  })
  const watch = (file: string) => {
    if (files.has(file)) return
    files.add(file)
    fs.watchFile(file, { interval: WATCH_MS }, (now, before) => {
      if (now.mtimeMs !== before.mtimeMs || now.size !== before.size) changed()
    })
  }
  try {
    while (!isOver) {
      const change = new Promise<void>((resolve) => {
        wake = resolve
      })
      child = startChild(watch)
      const ended = endOf(child)
      const first = await Promise.race([change.then(() => 'change'), ended.then(() => 'end')])
      if (!isOver && first === 'end' && child.exitCode !== exitCodes.restart) {
        process.stderr.write('waiting for a change of a file before starting anew\n')
        await change
      }
      await stopChild(child, ended)
      // An editor may write several files, or one in several steps.
      if (!isOver) await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
    }
  } finally {
    for (const file of files) fs.unwatchFile(file)
    endSignals()
  }
  return exitCodes.done
}

function startChild(onFile: (file: string) => void): ChildProcess {
  const [, script = '', ...args] = process.argv
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    // A process group of its own: Ctrl-C is the parent's to pass on, once.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [childMark]: '1', DATABASE_URL: process.env['DATABASE_URL'] ?? EMBEDDED },
  })
  child.on('message', (message) => {
    const { loaded } = message as { readonly loaded?: unknown }
    if (typeof loaded === 'string') onFile(loaded)
  })
  return child
}

function endOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('close', () => resolve())
    child.once('error', () => resolve())
  })
}

async function stopChild(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return await ended
  child.kill('SIGTERM')
  const hurry = setTimeout(() => child.kill('SIGTERM'), HURRY_MS)
  await ended
  clearTimeout(hurry)
}
