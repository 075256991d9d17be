import { createHash } from 'node:crypto'

/**
 * Name of the notification channel for a schema: of fixed length, since a channel of more than 63 bytes is cut
 * by LISTEN and refused by NOTIFY; different schemas have different ones.
 */
export function channelOf(schema: string): string {
  return `holdfast_${createHash('sha256').update(schema).digest('hex').slice(0, 32)}`
}
