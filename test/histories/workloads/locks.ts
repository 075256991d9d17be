import { setTimeout as delay } from 'node:timers/promises'
import { LockLostError } from '../../../src/base/errors.ts'
import type { Lock } from '../../../src/locks/lock.ts'
import type { Client, LoggedCall } from '../call-log.ts'
import { checkLocks, type LockCall } from '../checkers/locks.ts'
import type { Workload } from '../workload.ts'

const RESOURCES = 3
const EPOCH_MS = 10_000
/** Pause between two looks at `held`. */
const LOOK_MS = 15

/**
 * Acquires with and without waiting; then, in any order, guarded writes, looks at `held`, extensions, repeated
 * acquisitions by the same owner, and pauses that may outlive the lease; then a release, or none.
 */
export const lockWorkload: Workload = {
  name: 'lock',
  enoughTurns: 120,
  async prepare({ app }) {
    await app.transaction(async (tx) => {
      await tx.query('create table if not exists guarded (resource text, token bigint)')
    })
  },
  statements: ['acquire_lock', 'extend_lock', 'release_lock', 'assert_lock', 'commit'],
  async turn(client) {
    const { random } = client
    const resource = `${client.run}-${client.epoch(EPOCH_MS)}-${random.whole(1, RESOURCES)}`
    const asked = {
      resource,
      owner: client.unique(),
      leaseMs: random.whole(100, 400),
      renew: random.chance(0.2),
    }
    const lock = await acquire(client, asked)
    if (lock?.fencingToken === undefined) return
    const held = { ...asked, lock, token: lock.fencingToken }
    for (let steps = random.whole(0, 4); steps > 0; steps -= 1) await use(client, held)
    // A renewed one would be held for ever.
    if (random.chance(0.1) && !asked.renew) return
    if (random.chance(0.2)) return await useAfterRelease(client, held)
    await release(client, held)
    if (random.chance(0.1)) await release(client, held)
  },
  check: (calls) => checkLocks(calls.map(lockCallOf)),
}

/** A crash of the server, which no run of this has, is all that makes them differ. */
function durabilityOf(resource: string): 'persistent' | 'ephemeral' {
  return resource.endsWith(`-${RESOURCES}`) ? 'ephemeral' : 'persistent'
}

interface Asked {
  readonly resource: string
  readonly owner: string
  readonly leaseMs: number
  /** Extended in the background: only the first lease can be counted on without looking at `held`. */
  readonly renew: boolean
}

interface Held extends Asked {
  readonly lock: Lock
  readonly token: bigint
}

async function acquire(client: Client, asked: Asked): Promise<Lock | undefined> {
  const { random, app } = client
  const { resource, owner, leaseMs, renew } = asked
  const waitMs = random.chance(0.5) ? random.whole(20, 300) : 0
  const options = { owner, leaseMs, renew, waitMs, retryMs: 50, durability: durabilityOf(resource) }
  const act = async () => await app.locks.acquire(resource, options)
  // The token tells whether it was granted; `held` says false once the lease may be over.
  return await client.call(
    'lock',
    { kind: 'acquire', resource, owner, leaseMs },
    act,
    ({ fencingToken: token }) => (token === undefined ? {} : { token }),
  )
}

async function use(client: Client, held: Held): Promise<void> {
  const { random } = client
  const roll = random.next()
  if (roll < 0.3) return await guard(client, held)
  if (roll < 0.55) return await countOnIt(client, held)
  if (roll < 0.75 && !held.renew) return await extendAndLook(client, held)
  if (roll < 0.85) return void (await acquire(client, { ...held, renew: false }))
  // Sometimes for longer than the lease.
  await delay(random.chance(0.15) ? held.leaseMs * 1.2 : random.whole(1, 20))
}

/** Another handle of the owner releases the lock: the first one does not know, and must get nothing by it. */
async function useAfterRelease(client: Client, held: Held): Promise<void> {
  const again = await acquire(client, { ...held, renew: false })
  if (again?.fencingToken !== held.token) return await release(client, held)
  await release(client, { ...held, lock: again })
  await delay(client.random.whole(1, 20))
  if (client.random.chance(0.5)) await guard(client, held)
  else await extend(client, held)
}

async function guard(client: Client, { resource, token }: Held): Promise<void> {
  const { app } = client
  const act = async () => {
    try {
      await app.transaction(async (tx) => {
        await app.locks.assert(tx, resource, token, { durability: durabilityOf(resource) })
        await tx.query('insert into guarded (resource, token) values ($1, $2)', [resource, String(token)])
      })
      return true
    } catch (error) {
      if (error instanceof LockLostError) return false
      throw error
    }
  }
  await client.call('lock', { kind: 'guard', resource, token }, act, (passed) => ({ passed }))
}

/** A process that reads `held` as true may count on the lock: a newer grant must not be known by then. */
async function countOnIt(client: Client, { resource, token, lock }: Held): Promise<void> {
  const asked = { kind: 'guard', resource, token, how: 'held' }
  await client.call(
    'lock',
    asked,
    () => lock.held,
    (passed) => ({ passed }),
  )
}

/** Looks at `held` all the while: an extension on its way may already have shortened the lease. */
async function extendAndLook(client: Client, held: Held): Promise<void> {
  let isOver = false
  const extending = extend(client, held).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await Promise.race([extending, delay(LOOK_MS)])
    await countOnIt(client, held)
  }
}

async function extend(client: Client, { resource, token, lock }: Held): Promise<void> {
  const leaseMs = client.random.whole(100, 400)
  const asked = { kind: 'extend', resource, token, leaseMs }
  await client.call(
    'lock',
    asked,
    async () => await lock.extend(leaseMs),
    (extended) => ({ extended }),
  )
}

async function release(client: Client, { resource, token, lock }: Held): Promise<void> {
  const asked = { kind: 'release', resource, token }
  await client.call(
    'lock',
    asked,
    async () => await lock.release(),
    (released) => ({ released }),
  )
}

function lockCallOf({ asked, answer, ...recorded }: LoggedCall): LockCall {
  const token = (asked['token'] ?? answer?.['token']) as string | undefined
  const call = {
    ...recorded,
    ...asked,
    ...answer,
    ...(token === undefined ? {} : { token: BigInt(token) }),
  }
  const { kind } = call as unknown as LockCall
  // An error of these may follow a try whose answer was lost.
  const isRepeated = kind === 'extend' || kind === 'release' || kind === 'acquire'
  if (isRepeated && recorded.outcome === 'failed')
    return { ...call, outcome: 'unknown', endedMs: Number.POSITIVE_INFINITY } as unknown as LockCall
  return call as unknown as LockCall
}
