import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { Coalescer } from './coalescer.ts'

/** A `send` whose answers the test gives. */
function controlled() {
  const calls: { items: readonly number[]; answer(): void; fail(error: Error): void }[] = []
  const send = (items: readonly number[]) =>
    new Promise<readonly string[]>((resolve, reject) => {
      calls.push({ items, answer: () => resolve(items.map((item) => `a${item}`)), fail: reject })
    })
  return { calls, send }
}

const options = { maxItems: 3, sizeOf: () => 1, maxSize: 100 }
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a coalescer', () => {
  it('sends a lone item at once, and those of one turn together', async () => {
    const { calls, send } = controlled()
    const coalescer = new Coalescer<number, string>(send, options)
    const answers = Promise.all([coalescer.add(1), coalescer.add(2)])
    await turn()
    expect(calls.map(({ items }) => items)).toEqual([[1, 2]])
    calls[0]?.answer()
    expect(await answers).toEqual(['a1', 'a2'])
  })

  it('gathers while a call is under way, up to the limits, and keeps the order', async () => {
    const { calls, send } = controlled()
    const coalescer = new Coalescer<number, string>(send, { ...options, sizeOf: (item) => item, maxSize: 10 })
    const answers = [1, 2, 3, 4, 9, 50, 5].map((item) => coalescer.add(item))
    for (const [index, items] of [[1, 2, 3], [4], [9], [50], [5]].entries()) {
      await turn()
      expect(calls).toHaveLength(index + 1)
      expect(calls[index]?.items).toEqual(items)
      calls[index]?.answer()
    }
    expect(await Promise.all(answers)).toEqual(['a1', 'a2', 'a3', 'a4', 'a9', 'a50', 'a5'])
  })

  it('fails for all that shared a call, and for nobody else', async () => {
    const { calls, send } = controlled()
    const coalescer = new Coalescer<number, string>(send, options)
    const first = [1, 2, 3].map((item) => coalescer.add(item).catch((error: Error) => error.message))
    const next = coalescer.add(4)
    await turn()
    calls[0]?.fail(new Error('broken'))
    expect(await Promise.all(first)).toEqual(['broken', 'broken', 'broken'])
    await turn()
    calls[1]?.answer()
    expect(await next).toBe('a4')
  })

  it('is idle once nothing waits, and starts anew afterwards', async () => {
    const { calls, send } = controlled()
    const coalescer = new Coalescer<number, string>(send, options)
    await coalescer.idle()
    const first = coalescer.add(1)
    const idle = coalescer.idle().then(() => 'idle')
    await turn()
    calls[0]?.answer()
    expect([await first, await idle]).toEqual(['a1', 'idle'])
    const second = coalescer.add(2)
    await turn()
    calls[1]?.answer()
    expect(await second).toBe('a2')
  })

  it("sends in nobody's asynchronous context", async () => {
    const storage = new AsyncLocalStorage<string>()
    const seen: unknown[] = []
    const coalescer = new Coalescer<number, string>(async (items) => {
      seen.push(storage.getStore())
      return items.map(String)
    }, options)
    await storage.run('inside', async () => await coalescer.add(1))
    expect(seen).toEqual([undefined])
  })
})
