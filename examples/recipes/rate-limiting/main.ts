import { setTimeout as sleep } from 'node:timers/promises'
import { runRecipe, type Stage } from '../stage/run-recipe.ts'
import { type Passed, passesBlindly, passesBucket, passesCounter, passesWindow } from './limits.ts'

const CALLS = 60
const LIMIT = 10

async function callAtOnce(call: () => Promise<boolean>): Promise<number> {
  const answers = await Promise.all(Array.from({ length: CALLS }, call))
  return answers.filter(Boolean).length
}

/** A window that is longer than the run: exactly `LIMIT` calls pass. One that is short: its end opens the next. */
async function showWindow(
  { app, say, check }: Stage,
  how: string,
  { passes, key }: { readonly passes: typeof passesWindow; readonly key: string },
): Promise<void> {
  const run = Date.now()
  const count = await callAtOnce(
    async () => await passes(app, `${run}-long`, { limit: LIMIT, windowMs: 60_000 }),
  )
  say(`fixed window, ${how}: ${CALLS} calls at once, ${count} pass`)
  check(`exactly ${LIMIT} pass in a window`, count === LIMIT)

  const short = { limit: 1, windowMs: 200 }
  const first = await passes(app, `${run}-short`, short)
  while (await app.keys.exists(`${key}/${run}-short`, { durability: 'ephemeral' })) await sleep(20)
  check('the next window opens when it has passed', first && (await passes(app, `${run}-short`, short)))
}

/** Eight callers that ask again and again: what passes is what the bucket held, and what has dripped into it. */
async function showBucket({ app, quick, say, check }: Stage): Promise<void> {
  const caller = `${Date.now()}`
  const bucket = { burst: LIMIT, perSecond: 50 }
  const until = performance.now() + (quick ? 600 : 2_000)
  const answers: Passed[] = []
  const ask = async () => {
    while (performance.now() < until) answers.push(await passesBucket(app, caller, bucket))
  }
  await Promise.all(Array.from({ length: 8 }, ask))

  const passed = answers.filter(({ passes }) => passes)
  const refused = answers.filter(({ passes }) => !passes)
  const firstMs = Math.min(...passed.map(({ atMs }) => atMs))
  const dripped = (atMs: number) => ((atMs - firstMs) * bucket.perSecond) / 1000
  const last = Math.max(...passed.map(({ atMs }) => atMs))
  const allowed = bucket.burst + dripped(last)
  say(`token bucket: ${answers.length} calls in ${last - firstMs} ms, ${passed.length} of ${allowed} pass`)
  check('no more pass than the bucket held and was given', passed.length <= allowed)
  // A refusal says that the bucket was empty: all that it was given had been taken.
  const lastRefusal = Math.max(...refused.map(({ atMs }) => atMs))
  const before = passed.filter(({ atMs }) => atMs <= lastRefusal).length
  check('and no fewer', refused.length > 0 && before > bucket.burst + dripped(lastRefusal) - 1)
}

await runRecipe(async (stage) => {
  if (stage.unguarded) {
    await showWindow(stage, 'by hope', { passes: passesBlindly, key: 'rate' })
    return
  }
  await showWindow(stage, 'by script', { passes: passesWindow, key: 'rate' })
  await showWindow(stage, 'by increment', { passes: passesCounter, key: 'count' })
  await showBucket(stage)
})
