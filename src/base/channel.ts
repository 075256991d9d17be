import { createHash } from 'node:crypto'

/**
 * Name of the channel that workers of a schema listen to. Of fixed length, since a channel of more than 63 bytes is cut by
 * LISTEN and refused by NOTIFY; different schemas have different ones.
 */
export function channelOf(schema: string): string {
  return `holdfast_${digest(schema)}`
}

/** Name of the channel of {@link channelOf} for who waits for a lock or watches keys: workers are not woken by those. */
export function hintChannelOf(schema: string): string {
  return `holdfast_hint_${digest(schema)}`
}

function digest(schema: string): string {
  return createHash('sha256').update(schema).digest('hex').slice(0, 32)
}
