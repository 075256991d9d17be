import type { App, Lock } from 'holdfast'

export const RESOURCE = 'recipe/leader'

/** Of a leader that dies, this is how long nobody leads. Short, so that it can be watched; 30 s is the default. */
export const LEASE_MS = 1_000

/**
 * Stands for leader for as long as the process lives. Whoever has the lock leads, and keeps it by extending it each third of its
 * lease; a leader that loses it stands again.
 *
 * @param lead Leads until the lock's signal aborts; each of its writes takes the lock's token along.
 */
export async function standForLeader(
  app: App,
  lead: (lock: Lock & { readonly held: true }) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await using lock = await app.locks.acquire(RESOURCE, {
      leaseMs: LEASE_MS,
      waitMs: 3_600_000,
      renew: true,
      signal,
    })
    if (lock.held) await lead(lock)
  }
}

/** What the leader decides, where all can read it. Refused once another may be leader: only that is what makes it safe. */
export async function writeDecision(app: App, leader: string, token: bigint): Promise<void> {
  await app.transaction(async (tx) => {
    await app.locks.assert(tx, RESOURCE, token)
    await tx.query('insert into decision (leader, token) values ($1, $2)', [leader, String(token)])
  })
}

/** What not to do: a leader that was paused does not know that it was replaced. */
export async function writeBlindly(app: App, leader: string, token: bigint): Promise<void> {
  await app.transaction(async (tx) => {
    await tx.query('insert into decision (leader, token) values ($1, $2)', [leader, String(token)])
  })
}
