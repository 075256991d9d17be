import { defineApp } from 'holdfast'
import { type Contender, KEYS, keyOf, VALUE } from './contender.ts'

const SCRIPT = `
  let status = get @status_key
  if status = null then
    set @status_key "completed"
    set @owner_key @owner
  end
  return status`

/** Default settings; `persistent` or, in unlogged tables, `ephemeral`. */
export async function openHoldfast(
  url: string,
  maxConnections: number,
  durability: 'persistent' | 'ephemeral',
): Promise<Contender> {
  const app = defineApp({ name: 'bench', database: url, jobs: [], maxConnections })
  await app.migrate()
  for (let n = 0; n < KEYS; n += 1) await app.keys.set(keyOf(n), VALUE, { durability })
  const value = Buffer.from(VALUE)
  return {
    name: durability === 'persistent' ? 'holdfast' : 'holdfast, ephemeral',
    operations: {
      async lock(n) {
        const lock = await app.locks.acquire(keyOf(n), { durability })
        await lock.release()
      },
      async get(n) {
        await app.keys.get(keyOf(n), { durability })
      },
      async set(n) {
        await app.keys.set(keyOf(n), value, { durability })
      },
      async compareAndSet(n) {
        const read = await app.keys.get(keyOf(n), { durability })
        await app.keys.set(keyOf(n), value, { durability, ifRevision: read?.revision ?? -1n })
      },
      ...(durability === 'ephemeral'
        ? {}
        : {
            async script(n: number) {
              const params = { status_key: `script/${n}/status`, owner_key: `script/${n}/owner`, owner: 'me' }
              await app.script(SCRIPT, params)
            },
          }),
    },
    async openWaiter(resource) {
      const own = defineApp({ name: 'bench', database: url, jobs: [], maxConnections: 2 })
      return {
        async acquire() {
          const lock = await own.locks.acquire(resource, { waitMs: 60_000, durability })
          if (!lock.held) throw new Error('the lock was not had within a minute')
          return async () => {
            await lock.release()
          }
        },
        close: async () => await own.close(),
      }
    },
    close: async () => await app.close(),
  }
}
