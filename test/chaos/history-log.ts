import fs from 'node:fs'

/** One line of a process's history. `t`: the machine's monotonic clock in milliseconds, the same in all processes. */
export interface Entry {
  readonly kind: string
  readonly t: number
  readonly [fact: string]: unknown
}

export type Note = (kind: string, facts?: Readonly<Record<string, unknown>>) => void

export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000
}

/** Opens an append-only history. Each line is one write, so that what was noted survives a SIGKILL. */
export function openHistory(file: string): Note {
  const descriptor = fs.openSync(file, 'a')
  return (kind, facts = {}) => {
    const entry = { kind, t: machineMs(), ...facts }
    fs.writeSync(descriptor, `${JSON.stringify(entry, textOfBigints)}\n`)
  }
}

function textOfBigints(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

/** Reads a history while it is written: `entries` grows with each `read`. */
export class HistoryReader {
  readonly file: string
  readonly entries: Entry[] = []
  #offset = 0
  #rest = ''

  constructor(file: string) {
    this.file = file
  }

  read(): readonly Entry[] {
    if (!fs.existsSync(this.file)) return this.entries
    const descriptor = fs.openSync(this.file, 'r')
    try {
      const buffer = Buffer.alloc(fs.fstatSync(descriptor).size - this.#offset)
      const length = fs.readSync(descriptor, buffer, 0, buffer.length, this.#offset)
      this.#offset += length
      const lines = (this.#rest + buffer.toString('utf8', 0, length)).split('\n')
      // A line cut short by a SIGKILL stays here.
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.entries.push(JSON.parse(line) as Entry)
    } finally {
      fs.closeSync(descriptor)
    }
    return this.entries
  }

  /** The attempts whose handler has begun and not ended, as `job:token`, with the entry of the start. */
  running(): ReadonlyMap<string, Entry> {
    const open = new Map<string, Entry>()
    for (const entry of this.read()) {
      const attempt = `${String(entry['job'])}:${String(entry['token'])}`
      if (entry.kind === 'start') open.set(attempt, entry)
      if (entry.kind === 'end') open.delete(attempt)
    }
    return open
  }
}
