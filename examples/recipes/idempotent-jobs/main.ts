import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom } from '../../shop/random.ts'
import { runRecipe } from '../stage/run-recipe.ts'
import { Crew } from './crew.ts'
import { createInvoices, isBad, isOver, readFacts } from './invoices.ts'

const WORKERS = 4

await runRecipe(
  async ({ app, url, quick, unguarded, seed, variant, say, check }) => {
    const plan = quick ? { count: 60, bad: 4, kills: 3 } : { count: 200, bad: 10, kills: 10 }
    const random = createRandom(seed)
    await app.transaction((tx) => createInvoices(tx, plan))
    // Of a run before, on the same database.
    for await (const { key } of app.keys.all({ prefix: 'jobs/inv-' })) await app.keys.delete(key)
    say(`${plan.count} invoices, ${WORKERS} workers, variant ${variant}, seed ${seed}`)

    const env = { DATABASE_URL: url, VARIANT: variant, UNGUARDED: String(unguarded) }
    const crew = new Crew({ workers: WORKERS, env, random, say })
    const facts = () => app.transaction(readFacts)
    const ended = async () => {
      const { completed, failed } = (await facts()).statuses
      return completed + failed
    }

    const stopping = crew.stop({
      suits: (jobId) => !isBad(jobId, plan.bad),
      isOver: (jobId) => app.transaction((tx) => isOver(tx, jobId)),
    })
    // Each kill when so many are over, which the seed says, and then at any moment.
    const moments = Array.from({ length: plan.kills }, () => random.next() * 0.7 * plan.count)
    let kills = 0
    for (const moment of moments.toSorted((a, b) => a - b)) {
      while ((await ended()) < moment) await sleep(10)
      await sleep(random.integer(0, 100))
      let isKilled = crew.kill()
      for (; !isKilled && !crew.isDone; isKilled = crew.kill()) await sleep(10)
      if (isKilled) kills += 1
    }
    await crew.done()
    await stopping

    const { statuses, chargedTwice, completedUncharged, failedCharged } = await facts()
    for (const [status, count] of Object.entries(statuses))
      say(`  ${status.padEnd(12)}${String(count).padStart(4)}`)
    say(`  kills       ${String(kills).padStart(4)}`)
    say(`  refused     ${String(crew.count('refused')).padStart(4)}  writes of a worker whose lease was over`)
    say(`  twice       ${String(chargedTwice).padStart(4)}  invoices charged more than once`)
    for (const failure of crew.failures) say(`  failed: ${failure}`)
    check(
      'each invoice is over',
      statuses.completed === plan.count - plan.bad && statuses.failed === plan.bad,
    )
    check('none is charged twice', chargedTwice === 0)
    check('none is completed without its charge', completedUncharged === 0 && failedCharged === 0)
    check('workers were killed on the way', kills === plan.kills)
    check('and none failed otherwise', crew.failures.length === 0)
    if (variant === 'lock') check('a write that came too late was refused', crew.count('refused') > 0)
  },
  { variants: ['lock', 'script'] },
)
