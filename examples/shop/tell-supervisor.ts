import type { Message } from './record.ts'

/** Sends a message to the process that started this one; does nothing if nobody did. */
export function tellSupervisor(message: Message): void {
  // The callback takes the error of a supervisor that is gone: `disconnect` says so already.
  process.send?.(message, undefined, undefined, () => undefined)
}
