import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from 'holdfast'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface Instance extends Address {
  readonly id: string
}

/** How long a dead instance is still listed. Short, so that it can be watched; 30 s is common. */
export const TTL_MS = 2_000

/** The bucket of a service: its instances are the keys in it. */
export function bucketOf(service: string): string {
  return `services/${service}`
}

/**
 * Keeps an instance listed until `signal` aborts, and takes it off the list then. An extension leaves no trace in the history;
 * the registration does, so that it can be asked later who was there.
 */
export async function register(
  app: App,
  service: string,
  { id, host, port }: Instance,
  signal: AbortSignal,
): Promise<void> {
  const key = `${bucketOf(service)}/${id}`
  const set = async () => await app.keys.set(key, JSON.stringify({ host, port }), { ttlMs: TTL_MS })
  await set()
  while (!signal.aborted) {
    await sleep(TTL_MS / 3, undefined, { signal }).catch(() => undefined)
    // One that was paused for too long is off the list: extending does not bring it back.
    if (!signal.aborted && !(await app.keys.extend(key, TTL_MS)).ok) await set()
  }
  await app.keys.delete(key)
}

/** Who is there now, or was at a time. */
export async function discover(app: App, service: string, asOf?: Date): Promise<readonly Instance[]> {
  const found: Instance[] = []
  const bucket = bucketOf(service)
  for await (const entry of app.keys.all({ bucket, asOf }))
    found.push({ id: entry.key.slice(bucket.length + 1), ...entry.json<Address>() })
  return found
}
