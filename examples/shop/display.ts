import type { WriteStream } from 'node:tty'
import { stripVTControlCharacters } from 'node:util'

/** How things stand at one moment. */
export interface Snapshot {
  readonly orders: number
  readonly confirmed: number
  readonly rolledBack: number
  readonly mails: number
  readonly completed: number
  readonly kills: number
  readonly rescues: number
  readonly refused: number
  /** Each worker and its state, such as `oslo-2 up`. */
  readonly workers: readonly string[]
}

export interface Display {
  /** Tells of an event: a line that stays. */
  note(text: string): void
  /** Shows how things stand: in place on a terminal, as a line now and then elsewhere. */
  update(snapshot: Snapshot): void
  /** Leaves the last state on the screen and gives the terminal back. */
  close(): void
}

/** How often others than a terminal get a line of progress, in milliseconds. */
const LINE_EVERY_MS = 2_000
const BAR_WIDTH = 36

export function createDisplay(stream: WriteStream | NodeJS.WriteStream): Display {
  const startedAt = performance.now()
  const clock = () => `${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5)} s`
  const meter = createMeter()
  return stream.isTTY ? terminalDisplay(stream, clock, meter) : lineDisplay(stream, clock, meter)
}

function lineDisplay(stream: NodeJS.WriteStream, clock: () => string, meter: Meter): Display {
  let shownAt = -LINE_EVERY_MS
  let unshown: Snapshot | undefined
  const write = (text: string) => void stream.write(`${clock()}  ${text}\n`)
  const show = (snapshot: Snapshot) => {
    shownAt = performance.now()
    unshown = undefined
    write(`${progressText(snapshot, meter)} · ${countsText(snapshot)}`)
  }
  return {
    note: write,
    update: (snapshot) => {
      meter.add(snapshot)
      unshown = snapshot
      if (performance.now() - shownAt >= LINE_EVERY_MS) show(snapshot)
    },
    close: () => {
      if (unshown) show(unshown)
    },
  }
}

function terminalDisplay(stream: NodeJS.WriteStream, clock: () => string, meter: Meter): Display {
  let status: string[] = []
  const erase = () => (status.length === 0 ? '' : `\x1b[${status.length}A\x1b[J`)
  const fit = (line: string) => {
    // Escape sequences take no room; only the bar's line has them, and it is short.
    const columns = stream.columns ?? 80
    return stripVTControlCharacters(line).length < columns ? line : `${line.slice(0, columns - 2)}…`
  }
  const draw = (above: string) => {
    stream.write(`${erase()}${above}${status.map((line) => `${fit(line)}\n`).join('')}`)
  }
  stream.write('\x1b[?25l')
  const showCursor = () => void stream.write('\x1b[?25h')
  process.once('exit', showCursor)

  return {
    note: (text) => {
      // Erased by the lines it had, drawn anew below the note.
      draw(`\x1b[2m${clock()}\x1b[22m  ${text}\n`)
    },
    update: (snapshot) => {
      meter.add(snapshot)
      const next = [
        `${bar(snapshot)}  ${progressText(snapshot, meter)}`,
        countsText(snapshot),
        snapshot.workers.join('   '),
      ]
      const eraseOld = erase()
      status = next
      stream.write(`${eraseOld}${status.map((line) => `${fit(line)}\n`).join('')}`)
    },
    close: () => {
      process.off('exit', showCursor)
      showCursor()
      status = []
    },
  }
}

function bar({ completed, rolledBack, orders }: Snapshot): string {
  const filled = Math.min(BAR_WIDTH, Math.floor(((completed + rolledBack) / orders) * BAR_WIDTH))
  return `\x1b[32m${'█'.repeat(filled)}\x1b[39m\x1b[2m${'░'.repeat(BAR_WIDTH - filled)}\x1b[22m`
}

function progressText({ completed, rolledBack, orders }: Snapshot, meter: Meter): string {
  const done = completed + rolledBack
  const percent = Math.floor((done / orders) * 100)
  return `${percent} % of ${format(orders)} orders, ${meter.confirmedPerSecond()} confirmed/s, ${meter.mailsPerSecond()} mails/s`
}

function countsText(snapshot: Snapshot): string {
  const waiting = snapshot.confirmed - snapshot.completed
  return [
    `confirmed ${format(snapshot.confirmed)}`,
    `rolled back ${format(snapshot.rolledBack)}`,
    `mails ${format(snapshot.mails)}`,
    `jobs open ${format(Math.max(0, waiting))}`,
    `kills ${snapshot.kills}`,
    `rescues ${snapshot.rescues}`,
    `refused ${snapshot.refused}`,
  ].join(' · ')
}

export function format(count: number): string {
  return count.toLocaleString('en-US')
}

interface Meter {
  add(snapshot: Snapshot): void
  confirmedPerSecond(): number
  mailsPerSecond(): number
}

/** Rates over the last second or so. */
function createMeter(): Meter {
  const window: { readonly at: number; readonly snapshot: Snapshot }[] = []
  const rate = (count: (snapshot: Snapshot) => number): number => {
    const [first] = window
    const last = window.at(-1)
    if (!first || !last || last.at === first.at) return 0
    return Math.round(((count(last.snapshot) - count(first.snapshot)) / (last.at - first.at)) * 1_000)
  }
  return {
    add: (snapshot) => {
      const at = performance.now()
      window.push({ at, snapshot })
      while (window.length > 2 && at - (window[0]?.at ?? at) > 1_000) window.shift()
    },
    confirmedPerSecond: () => rate((snapshot) => snapshot.confirmed),
    mailsPerSecond: () => rate((snapshot) => snapshot.mails),
  }
}
