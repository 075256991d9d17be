import { ScriptThrownError } from 'holdfast'
import { createRandom } from '../../shop/random.ts'
import { runRecipe, type Stage } from '../stage/run-recipe.ts'
import { reserveBlindly, reserveByRevision, reserveByScript } from './reserve.ts'

const BUYERS = 50
const STOCK = 20n

type Reserve = typeof reserveByScript

/** Lets all buyers buy at once, each on a connection of its own. */
async function sell(
  stage: Stage,
  how: string,
  reserve: Reserve,
  quantities: readonly number[],
): Promise<void> {
  const { app, say, check } = stage
  const item = `teapot by ${how}`
  await app.keys.set(`stock/${item}`, String(STOCK))
  // Of a run before, on the same database.
  for await (const { key } of app.keys.all({ bucket: `holds/${item}` })) await app.keys.delete(key)

  const answers = await Promise.all(
    quantities.map(async (quantity, n) => await reserve(app, { item, buyer: `buyer-${n}`, quantity })),
  )

  const left = (await app.keys.get(`stock/${item}`))?.integer() ?? -1n
  let held = 0n
  for await (const hold of app.keys.all({ bucket: `holds/${item}` })) held += hold.integer()
  const promised = quantities.filter((_, n) => answers[n] === 'held').reduce((sum, one) => sum + one, 0)
  say(`${item}: ${BUYERS} buyers, stock ${STOCK}, promised ${promised}, held ${held}, left ${left}`)
  check(`what was promised is held: ${promised}`, held === BigInt(promised))
  check('nothing is oversold: held + left = stock', held + left === STOCK && left >= 0n)
  check('it sells what it can', left < BigInt(Math.max(...quantities)))
}

await runRecipe(
  async (stage) => {
    const { app, seed, unguarded, check } = stage
    const random = createRandom(seed)
    const ones = Array.from({ length: BUYERS }, () => 1)
    const mixed = ones.map(() => random.integer(1, 3))
    // Its pool opens connections as it needs them: all of them now.
    await Promise.all(ones.map(() => app.transaction((tx) => tx.query('select pg_sleep(0.2)'))))
    const { rows } = await app.transaction((tx) =>
      tx.query<{ count: number }>(
        `select count(*)::int as count from pg_stat_activity where datname = current_database() and backend_type = 'client backend'`,
      ),
    )
    check(`${BUYERS} buyers have a connection each`, (rows[0]?.count ?? 0) >= BUYERS)

    if (unguarded) {
      await sell(stage, 'hope', reserveBlindly, ones)
      return
    }
    await sell(stage, 'script', reserveByScript, ones)
    await sell(stage, 'script, one to three', reserveByScript, mixed)
    await sell(stage, 'revision', reserveByRevision, ones)
    await sell(stage, 'revision, one to three', reserveByRevision, mixed)

    const unknown = await reserveByScript(app, { item: 'samovar', buyer: 'a', quantity: 1 }).catch(
      (error: unknown) => error,
    )
    check('an unknown item is an error', unknown instanceof ScriptThrownError)
  },
  { connections: BUYERS },
)
