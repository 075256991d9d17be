import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { RedisServer } from '../measure/redis.ts'
import { type Contender, KEYS, keyOf, VALUE } from './contender.ts'

/** The part of ioredis, which is installed for BullMQ, that is used here. */
interface Redis {
  set(...args: readonly unknown[]): Promise<unknown>
  getBuffer(key: string): Promise<Buffer | null>
  eval(script: string, keys: number, ...args: readonly unknown[]): Promise<unknown>
  evalsha(hash: string, keys: number, ...args: readonly unknown[]): Promise<unknown>
  script(command: 'LOAD', text: string): Promise<string>
  quit(): Promise<unknown>
}

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
const COMPARE_AND_SET = `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) return 1 end return 0`
const SCRIPT = `local status = redis.call('get', KEYS[1])
  if not status then redis.call('set', KEYS[1], 'completed') redis.call('set', KEYS[2], ARGV[1]) end
  return status`
const LEASE_MS = 30_000
const RETRY_MS = 50

/** SET NX PX and Lua, one Redis, an append-only file flushed before each answer. No tokens, revisions or history. */
export async function openRedis(): Promise<Contender> {
  const server = await RedisServer.start('always')
  const require = createRequire(import.meta.url)
  const { Redis } = require('ioredis') as { Redis: new (url: string) => Redis }
  const redis = new Redis(server.url)
  for (let n = 0; n < KEYS; n += 1) await redis.set(keyOf(n), VALUE)
  const [release, compareAndSet, script] = await Promise.all(
    [RELEASE, COMPARE_AND_SET, SCRIPT].map(async (text) => await redis.script('LOAD', text)),
  )
  return {
    name: 'Redis',
    operations: {
      async lock(n) {
        const [key, owner] = [`lock/${keyOf(n)}`, randomUUID()]
        if (await redis.set(key, owner, 'PX', LEASE_MS, 'NX'))
          await redis.evalsha(String(release), 1, key, owner)
      },
      async get(n) {
        await redis.getBuffer(keyOf(n))
      },
      async set(n) {
        await redis.set(keyOf(n), VALUE)
      },
      async compareAndSet(n) {
        const value = await redis.getBuffer(keyOf(n))
        await redis.evalsha(String(compareAndSet), 1, keyOf(n), value, VALUE)
      },
      async script(n) {
        await redis.evalsha(String(script), 2, `script/${n}/status`, `script/${n}/owner`, 'me')
      },
    },
    async openWaiter(resource) {
      const own = new Redis(server.url)
      const owner = randomUUID()
      return {
        async acquire() {
          while (!(await own.set(resource, owner, 'PX', LEASE_MS, 'NX')))
            await new Promise((resolve) => setTimeout(resolve, RETRY_MS * (0.75 + Math.random() / 2)))
          return async () => {
            await own.eval(RELEASE, 1, resource, owner)
          }
        },
        close: async () => {
          await own.quit()
        },
      }
    },
    async close() {
      await redis.quit()
      await server.stop()
    },
  }
}
