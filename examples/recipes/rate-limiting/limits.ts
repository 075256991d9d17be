import type { App } from 'holdfast'

export interface Window {
  readonly limit: number
  readonly windowMs: number
}

/** The first call opens the window; the rest keep its end. A refused call writes nothing. */
const FIXED_WINDOW = `
let used = eget @slot
if not used then
  eset @slot 1 ex to_int(@ms)
  return 1
end
if to_int(used) >= to_int(@limit) then
  return 0
end
eset @slot to_int(used) + 1 ex max(1, expires(used) - current_time())
return 1`

/** True if the call is among the first `limit` of its window. */
export async function passesWindow(app: App, caller: string, { limit, windowMs }: Window): Promise<boolean> {
  const params = { slot: `rate/${caller}`, limit: String(limit), ms: String(windowMs) }
  return (await app.script(FIXED_WINDOW, params)).text() === '1'
}

/** The same as one call, which counts the refused ones too. */
export async function passesCounter(app: App, caller: string, { limit, windowMs }: Window): Promise<boolean> {
  const options = { ttlMs: windowMs, durability: 'ephemeral' } as const
  return (await app.keys.increment(`count/${caller}`, 1n, options)).value <= BigInt(limit)
}

/** What not to do: calls at the same time read the same count. Lets more through than it may. */
export async function passesBlindly(app: App, caller: string, { limit, windowMs }: Window): Promise<boolean> {
  const used = Number((await app.keys.get(`rate/${caller}`, { durability: 'ephemeral' }))?.text() ?? '0')
  if (used >= limit) return false
  await app.keys.set(`rate/${caller}`, String(used + 1), { ttlMs: windowMs, durability: 'ephemeral' })
  return true
}

export interface Bucket {
  /** Calls that a full bucket lets through at once. */
  readonly burst: number
  readonly perSecond: number
}

/**
 * Counts thousandths of a token: a token for each second and one for each millisecond are whole numbers, so nothing is rounded
 * away. A refused call writes nothing; an idle bucket is full, and so may be forgotten.
 */
const TOKEN_BUCKET = `
let now = current_time()
let full = to_int(@burst) * 1000
let tokens = eget @tokens
let filled = eget @filled
let left = full
if tokens != null && filled != null then
  let left = min(full, to_int(tokens) + max(0, now - to_int(filled)) * to_int(@per_second))
  let now = max(now, to_int(filled))
end
if left < 1000 then
  return [0, now]
end
let idle = full / to_int(@per_second) + 1
eset @tokens left - 1000 ex idle
eset @filled now ex idle
return [1, now]`

export interface Passed {
  readonly passes: boolean
  /** When it was decided, by PostgreSQL's clock, in milliseconds of the epoch. */
  readonly atMs: number
}

/** Passes if the bucket has a token left for the call. */
export async function passesBucket(app: App, caller: string, { burst, perSecond }: Bucket): Promise<Passed> {
  const { values } = await app.script(TOKEN_BUCKET, {
    tokens: `bucket/${caller}/tokens`,
    filled: `bucket/${caller}/filled`,
    burst: String(burst),
    per_second: String(perSecond),
  })
  const [passes, atMs] = values.map(({ value }) => Number(Buffer.from(value).toString()))
  return { passes: passes === 1, atMs: atMs ?? 0 }
}
