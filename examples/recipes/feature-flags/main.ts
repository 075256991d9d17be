import { setTimeout as sleep } from 'node:timers/promises'
import { runRecipe } from '../stage/run-recipe.ts'
import { changedAt, Flags, readFlag, updateBlindly, updateFlag } from './flags.ts'

const OPERATORS = 20

await runRecipe(async ({ app, unguarded, say, check }) => {
  const update = unguarded ? updateBlindly : updateFlag
  for await (const { key } of app.keys.all({ bucket: 'flags/shop' })) await app.keys.delete(key)
  await updateFlag(app, 'checkout', () => ({ on: true, percent: 0 }))
  const before = await changedAt(app, 'checkout')

  let changes = 0
  await using flags = new Flags(app, () => {
    changes += 1
  })
  await flags.start()
  check('a new process knows the flags', flags.get('checkout')?.percent === 0)
  // A value lasts until the next one's millisecond: one that is changed within its own cannot be asked for by its time.
  await sleep(5)

  // Each shows it to one more of a hundred, at the same time.
  const more = () => update(app, 'checkout', (flag) => ({ ...flag, percent: flag.percent + 1 }))
  await Promise.all(Array.from({ length: OPERATORS }, more))
  const after = await readFlag(app, 'checkout')
  say(`${OPERATORS} operators add one percent each: ${after?.percent} %`)
  check('no change is lost', after?.percent === OPERATORS)

  for (let n = 0; n < 250 && flags.get('checkout')?.percent !== after?.percent; n += 1) await sleep(20)
  say(`the watch told ${changes} changes: ${flags.get('checkout')?.percent} %`)
  check('who watches knows the newest', flags.get('checkout')?.percent === after?.percent)
  check('and was told each change', changes === OPERATORS)

  const then = before && (await readFlag(app, 'checkout', before))
  say(`as of ${before?.toISOString()}: ${then?.percent} %`)
  check('what a flag was can be asked later', then?.percent === 0)
})
