import { createHash } from 'node:crypto'
import type { LockId } from './lock-options.ts'

/** What is notified when the lock is free and somebody waits for it. The function `lock_topic` makes the same. */
export function topicOf({ durability, tenant, resource }: LockId): string {
  // Names have no line breaks.
  const hash = createHash('sha256').update(`${durability}\n${tenant}\n${resource}`).digest('hex')
  return `lock:${hash.slice(0, 32)}`
}
