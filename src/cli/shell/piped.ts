import { createInterface } from 'node:readline'
import { InputBuffer } from './input-buffer.ts'
import type { Session } from './session.ts'

export interface PipedOptions {
  readonly input: NodeJS.ReadableStream
  readonly session: Session
  /** True to go on after an input that failed. */
  readonly keepsGoing: boolean
  readonly onError: (error: unknown) => void
  /** Ends it: what runs is given up. */
  readonly signal: AbortSignal
}

/**
 * Runs inputs as they come from a file or another program, without a prompt: line by line, a script as soon as it is complete.
 *
 * @returns True if none failed.
 */
export async function runPiped(options: PipedOptions): Promise<boolean> {
  const { input, session, keepsGoing, onError, signal } = options
  const buffer = new InputBuffer()
  let isFine = true
  const run = async (text: string): Promise<void> => {
    try {
      await session.run(text, signal)
    } catch (error) {
      isFine = false
      onError(error)
    }
  }
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  const stop = () => lines.close()
  signal.addEventListener('abort', stop)
  try {
    for await (const line of lines) {
      const text = buffer.add(line)
      if (text !== undefined) await run(text)
      if (session.ended || signal.aborted || (!isFine && !keepsGoing)) return isFine
    }
    // What is not complete at the end is told to be so.
    const left = buffer.take()
    if (left !== '' && !signal.aborted) await run(left)
    return isFine
  } finally {
    signal.removeEventListener('abort', stop)
    lines.close()
  }
}
