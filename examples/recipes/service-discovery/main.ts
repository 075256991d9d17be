import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from 'holdfast'
import { startActor } from '../stage/actor.ts'
import { runRecipe } from '../stage/run-recipe.ts'
import { bucketOf, discover, type Instance, TTL_MS } from './registry.ts'

const SLACK_MS = 3_000

/** Looks until so many instances are listed; gives what was listed last. */
async function listed(app: App, count: number, withinMs: number): Promise<readonly Instance[]> {
  const until = performance.now() + withinMs
  for (;;) {
    const instances = await discover(app, 'mail')
    if (instances.length === count || performance.now() >= until) return instances
    await sleep(30)
  }
}

async function answers({ id, host, port }: Instance): Promise<boolean> {
  const response = await fetch(`http://${host}:${port}`).catch(() => undefined)
  return (await response?.text()) === id
}

function names(instances: readonly Instance[]): string {
  return instances.map(({ id }) => id).join(', ') || 'nobody'
}

await runRecipe(async ({ app, url, say, check }) => {
  for await (const { key } of app.keys.all({ bucket: bucketOf('mail') })) await app.keys.delete(key)
  const changes: string[] = []
  const end = new AbortController()
  const watch = app.keys.watch({ bucket: bucketOf('mail') }, { signal: end.signal })
  await watch.started
  const watching = (async () => {
    for await (const change of watch) {
      // Extensions are told too; a heartbeat is no news.
      if (change.kind === 'resync' || change.kind === 'extended') continue
      changes.push(`${change.kind} ${change.key}`)
      say(`  watch: ${change.kind} ${change.key}`)
    }
  })()

  const file = new URL('instance.ts', import.meta.url)
  const start = (name: string) => startActor({ file, name, env: { DATABASE_URL: url } })
  const [oslo, lima, kyiv] = [start('oslo'), start('lima'), start('kyiv')]
  const all = await listed(app, 3, 20_000)
  say(`listed: ${names(all)}`)
  check('who lives is listed', names(all) === 'kyiv, lima, oslo')
  check('and answers at its address', (await Promise.all(all.map(answers))).every(Boolean))
  // Longer than a listing lasts without its heartbeat.
  await sleep(TTL_MS + 300)
  check('and stays listed', (await discover(app, 'mail')).length === 3)

  const { rows } = await app.transaction((tx) => tx.query<{ now: Date }>('select clock_timestamp() as now'))
  const before = rows[0]?.now
  await sleep(5)
  say('lima is killed')
  lima.signal('SIGKILL')
  const rest = await listed(app, 2, TTL_MS + SLACK_MS)
  say(`listed: ${names(rest)}`)
  check('who is killed is not listed any more', names(rest) === 'kyiv, oslo')

  oslo.signal('SIGTERM')
  await oslo.ended
  const last = await discover(app, 'mail')
  say(`oslo has left; listed: ${names(last)}`)
  check('who leaves is not listed from then on', names(last) === 'kyiv')
  check('who was there can be asked later', names(await discover(app, 'mail', before)) === 'kyiv, lima, oslo')

  for (let n = 0; n < 150 && changes.length < 4; n += 1) await sleep(20)
  check(
    'the watch told who came and who left',
    [
      'set services/mail/oslo',
      'set services/mail/lima',
      'set services/mail/kyiv',
      'deleted services/mail/oslo',
    ].every((change) => changes.includes(change)),
  )
  kyiv.signal('SIGTERM')
  await kyiv.ended
  end.abort()
  await watching
})
