import fs from 'node:fs'
import { createInterface } from 'node:readline'
import type { ProgramMessage } from './processes.ts'

/** The side of a program that a test started with `startProgram`. */

/**
 * Tells the test something. Written at once and in full: what was told before a SIGKILL arrives.
 */
export function tell(kind: string, facts: Readonly<Record<string, unknown>> = {}): void {
  fs.writeSync(1, `${JSON.stringify({ kind, ...facts })}\n`)
}

/**
 * Takes the test's messages, and ends this process once the test's process is gone, so that nothing is left
 * of a run that was killed. Does not keep the process alive by itself.
 */
export function listenToTest(onMessage: (message: ProgramMessage) => void = () => {}): void {
  createInterface({ input: process.stdin })
    .on('line', (line) => onMessage(JSON.parse(line) as ProgramMessage))
    .on('close', () => process.exit(0))
  if ('unref' in process.stdin) process.stdin.unref()
}
