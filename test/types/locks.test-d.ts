import type { App, Lock } from '../../src/index.ts'

/** Programs that are wrong, and must not compile. Nothing here is run. */

declare const app: App
declare function charge(fence: bigint, signal: AbortSignal): Promise<void>

export async function looksFirst(): Promise<void> {
  await using lock = await app.locks.acquire('x')
  // @ts-expect-error: a lock that may not be held has no token to rely on
  await charge(lock.fencingToken, lock.signal)
  if (!lock.held) return
  await charge(lock.fencingToken, lock.signal)
}

export async function wrongOptions(lock: Lock): Promise<void> {
  // @ts-expect-error: there are two durabilities
  await app.locks.acquire('x', { durability: 'eternal' })
  // @ts-expect-error: a forced release says who does it, and why
  await app.locks.forceRelease('x', { actor: 'me' })
  // @ts-expect-error: a token is a bigint, which a number would round
  await app.locks.assert({}, 'x', 1)
  // @ts-expect-error: what was granted is not for writing
  lock.fencingToken = 1n
}
