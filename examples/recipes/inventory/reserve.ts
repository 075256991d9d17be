import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from 'holdfast'

export interface Order {
  readonly item: string
  readonly buyer: string
  readonly quantity: number
}

export type Reserved = 'held' | 'short'

const RESERVE = `
let want = to_int(@want)
let stock = get @stock
if not stock then
  throw 'unknown item'
end
if to_int(stock) >= want then
  set @hold want
  set @stock to_int(stock) - want
  return 'held'
else
  return 'short'
end`

/** As one script: who comes at the same time waits for the item, so nothing has to be tried again. */
export async function reserveByScript(app: App, { item, buyer, quantity }: Order): Promise<Reserved> {
  const keys = { stock: `stock/${item}`, hold: `holds/${item}/${buyer}` }
  // As long as the buyers before this one may take.
  const answer = await app.script(RESERVE, { ...keys, want: String(quantity) }, { lockWaitMs: 20_000 })
  return answer.text() as Reserved
}

/** By compare-and-set: nobody waits, and who was overtaken looks again. */
export async function reserveByRevision(app: App, { item, buyer, quantity }: Order): Promise<Reserved> {
  for (;;) {
    const stock = await app.keys.get(`stock/${item}`)
    if (stock === undefined) throw new Error('unknown item')
    const left = stock.integer() - BigInt(quantity)
    if (left < 0n) return 'short'
    const isMine = await app.transaction(async (tx) => {
      const taken = await app.keys.set(`stock/${item}`, String(left), { ifRevision: stock.revision, tx })
      // Stock and hold are written together, or not at all.
      if (taken.ok) await app.keys.set(`holds/${item}/${buyer}`, String(quantity), { tx })
      return taken.ok
    })
    if (isMine) return 'held'
    await sleep(Math.random() * 20)
  }
}

/** What not to do: between the look and the write others have written. Sells more than there is. */
export async function reserveBlindly(app: App, { item, buyer, quantity }: Order): Promise<Reserved> {
  const stock = await app.keys.get(`stock/${item}`)
  if (stock === undefined) throw new Error('unknown item')
  const left = stock.integer() - BigInt(quantity)
  if (left < 0n) return 'short'
  await app.keys.set(`stock/${item}`, String(left))
  await app.keys.set(`holds/${item}/${buyer}`, String(quantity))
  return 'held'
}
