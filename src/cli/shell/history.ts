import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { redactText } from '../../base/redact.ts'
import { tokenize } from '../../scripts/tokens.ts'

/** Inputs that are kept, in the file and for the arrow keys. */
export const HISTORY_SIZE = 1000
/** A longer input is not kept. */
const MAX_LENGTH = 8192
const CONTROL = /[\p{Cc}\u2028\u2029]/u

/**
 * Where inputs are kept: `HOLDFAST_HISTORY` if it is set (empty: nowhere), or `holdfast/history` in the user's folder for
 * state. `undefined`: nowhere.
 */
export function historyFile(env: NodeJS.ProcessEnv): string | undefined {
  const named = env['HOLDFAST_HISTORY']
  if (named !== undefined) return named === '' ? undefined : named
  const state = env['XDG_STATE_HOME']
  // The specification of these folders asks to pass over one that is not absolute.
  if (state !== undefined && path.isAbsolute(state)) return path.join(state, 'holdfast', 'history')
  const local = env['LOCALAPPDATA']
  if (process.platform === 'win32' && local !== undefined) return path.join(local, 'holdfast', 'history')
  const home = os.homedir()
  return home === '' ? undefined : path.join(home, '.local', 'state', 'holdfast', 'history')
}

/** An input as one line: its comments left out, its lines joined. A script means the same then. */
export function joined(input: string): string {
  if (!input.includes('\n')) return input
  let text = ''
  let at = 0
  for (const { kind, start, end } of tokenize(input)) {
    if (kind !== 'comment') continue
    text += input.slice(at, start)
    at = end
  }
  return `${text}${input.slice(at)}`
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
}

/**
 * What was typed, over several shells: appended to one file that only its user can read. A file that cannot be read or
 * written is done without.
 */
export class History {
  readonly #file: string | undefined
  readonly #entries: string[]

  constructor(file: string | undefined) {
    this.#file = file
    this.#entries = file === undefined ? [] : readEntries(file)
  }

  /** Oldest first. */
  get entries(): readonly string[] {
    return this.#entries
  }

  /**
   * Keeps an input: for the arrow keys, and in the file unless it begins with a blank, or holds what looks like a secret. The
   * same one as before is kept once.
   */
  add(input: string): void {
    const entry = joined(input).trimEnd()
    if (entry === '' || entry.length > MAX_LENGTH || CONTROL.test(entry)) return
    if (this.#entries.at(-1) === entry) return
    this.#entries.push(entry)
    if (this.#entries.length > HISTORY_SIZE) this.#entries.shift()
    if (this.#file !== undefined && !isPrivate(entry)) append(this.#file, entry)
  }
}

function isPrivate(entry: string): boolean {
  return /^\s/.test(entry) || redactText(entry) !== entry
}

function readEntries(file: string): string[] {
  try {
    const lines = fs.readFileSync(file, 'utf8').split('\n')
    const entries = lines.filter((line) => line !== '' && line.length <= MAX_LENGTH && !CONTROL.test(line))
    const kept = entries.slice(-HISTORY_SIZE)
    // Shells append; whoever finds twice as much as is kept makes it short again.
    if (lines.length > 2 * HISTORY_SIZE) replace(file, kept)
    return kept
  } catch {
    // There is none yet, or it is not for this user.
    return []
  }
}

function append(file: string, entry: string): void {
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    const handle = fs.openSync(file, 'a', 0o600)
    try {
      fs.fchmodSync(handle, 0o600)
      fs.writeSync(handle, `${entry}\n`)
    } finally {
      fs.closeSync(handle)
    }
  } catch {
    // A shell without history is better than none.
  }
}

/** Renamed when whole: another shell may be reading. */
function replace(file: string, entries: readonly string[]): void {
  const making = `${file}.${randomBytes(4).toString('hex')}`
  fs.writeFileSync(making, `${entries.join('\n')}\n`, { mode: 0o600 })
  fs.renameSync(making, file)
}
