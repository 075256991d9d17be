import { createInterface, type Interface } from 'node:readline'
import { CancelledError } from './fault-lines.ts'
import { HISTORY_SIZE, type History } from './history.ts'
import { InputBuffer } from './input-buffer.ts'
import type { Session } from './session.ts'

const PROMPT = 'holdfast> '
const PROMPT_ON = '     ...> '

export interface InteractiveOptions {
  readonly input: NodeJS.ReadableStream
  readonly output: NodeJS.WritableStream
  readonly session: Session
  readonly history: History
  /** What the text before the cursor could go on as, and the part of it that this replaces. */
  readonly complete: (line: string, pending: string) => Promise<readonly [readonly string[], string]>
  readonly onError: (error: unknown) => void
  /** Ends it: what runs is given up. */
  readonly signal: AbortSignal
}

type Offer = (error: null, result: [string[], string]) => void

/** What the user does next: a line was typed; `undefined`: there are no more. */
type Next = string | undefined

/**
 * Reads and runs inputs at a terminal until the user leaves.
 *
 * Ctrl-C gives up what runs; with nothing running it drops what was typed. Ctrl-D leaves. Lines that are typed or pasted
 * while something runs wait for their turn.
 */
export async function runInteractive(options: InteractiveOptions): Promise<void> {
  const { input, output, session, history, signal } = options
  const buffer = new InputBuffer()
  const terminal = createInterface({
    input,
    output,
    terminal: true,
    prompt: PROMPT,
    historySize: HISTORY_SIZE,
    history: [...history.entries].reverse(),
    completer: (line: string, callback: Offer) => {
      const offer = async () => {
        const [found, part] = await options.complete(line, buffer.pending)
        callback(null, [[...found], part])
      }
      void offer()
    },
  })
  const lines = new LineQueue(terminal)
  const recall = new Recall(terminal, history)
  let running: AbortController | undefined
  terminal.on('SIGINT', () => {
    lines.drop()
    if (running) return running.abort(new CancelledError())
    const isEmpty = terminal.line === '' && buffer.pending === ''
    dropLine(terminal)
    buffer.take()
    output.write(isEmpty ? '\nCtrl-D or "exit" leaves\n' : '\n')
    terminal.setPrompt(PROMPT)
    terminal.prompt()
  })
  const stop = () => {
    running?.abort(new CancelledError())
    terminal.close()
  }
  signal.addEventListener('abort', stop)
  try {
    while (!session.ended && !signal.aborted) {
      terminal.setPrompt(buffer.pending === '' ? PROMPT : PROMPT_ON)
      // With what was typed ahead.
      if (!lines.waiting) terminal.prompt(true)
      const line: Next = await lines.next()
      if (line === undefined) break
      const text = buffer.add(line)
      if (text === undefined) continue
      history.add(text)
      recall.refresh()
      running = new AbortController()
      try {
        await session.run(text, running.signal)
      } catch (error) {
        options.onError(error)
      } finally {
        running = undefined
      }
    }
    // What follows on the screen begins at its left.
    if (!session.ended) output.write('\n')
  } finally {
    signal.removeEventListener('abort', stop)
    terminal.close()
  }
}

/** Deletes what is typed, wherever the cursor is. */
function dropLine(terminal: Interface): void {
  terminal.write(null, { ctrl: true, name: 'e' })
  terminal.write(null, { ctrl: true, name: 'u' })
}

/** The lines of a terminal in order, also those that come while nobody asks. */
class LineQueue {
  readonly #lines: string[] = []
  #isClosed = false
  #wake: (() => void) | undefined

  constructor(terminal: Interface) {
    terminal.on('line', (line) => {
      this.#lines.push(line)
      this.#wake?.()
    })
    terminal.on('close', () => {
      this.#isClosed = true
      this.#wake?.()
    })
  }

  /** Forgets the lines that nobody has asked for. */
  drop(): void {
    this.#lines.length = 0
  }

  get waiting(): boolean {
    return this.#lines.length > 0
  }

  /** The next line; `undefined` once the terminal is closed and all were given. */
  async next(): Promise<Next> {
    while (this.#lines.length === 0 && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#lines.shift()
  }
}

/** What the arrow keys bring back: whole inputs, while the terminal itself would keep each line of one. */
class Recall {
  readonly #history: History
  /** The terminal's own list, newest first; it hands it out with each line. */
  #list: string[] | undefined

  constructor(terminal: Interface, history: History) {
    this.#history = history
    terminal.on('history', (list) => {
      this.#list = list
    })
  }

  refresh(): void {
    this.#list?.splice(0, this.#list.length, ...[...this.#history.entries].reverse())
  }
}
