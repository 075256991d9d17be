import { setTimeout as sleep } from 'node:timers/promises'
import { type Actor, startActor, type Told } from '../stage/actor.ts'
import { runRecipe } from '../stage/run-recipe.ts'
import { LEASE_MS } from './lead.ts'

/** What a busy machine may add to a lease before the next leader is heard of. */
const SLACK_MS = 3_000

interface Reign {
  readonly candidate: Actor
  readonly token: number
}

/** Returns while the leader thinks, after it has written at least one decision. */
async function decided({ candidate }: Reign): Promise<void> {
  await candidate.next('thinks')
  await candidate.next('thinks')
}

interface Decision {
  readonly leader: string
  readonly token: number
}

await runRecipe(async ({ app, url, unguarded, say, check }) => {
  await app.transaction(async (tx) => {
    await tx.query('drop table if exists decision')
    await tx.query(
      'create table decision (id bigserial primary key, leader text not null, token bigint not null)',
    )
  })

  const reigns: Reign[] = []
  const start = (name: string): Actor => {
    const onTold = (told: Told) => {
      if (told.kind === 'leads') {
        reigns.push({ candidate, token: Number(told.token) })
        say(`${name} leads with token ${String(told.token)}`)
      } else if (told.kind === 'refused') {
        say(`${name}: the write under token ${String(told.token)} was refused`)
      }
    }
    const env = { DATABASE_URL: url, UNGUARDED: String(unguarded) }
    const file = new URL('candidate.ts', import.meta.url)
    const candidate = startActor({ file, name, env, onTold })
    return candidate
  }
  const candidates = ['oslo', 'lima', 'kyiv'].map(start)
  /** The leader after so many before. */
  const reign = async (number: number, withinMs: number): Promise<Reign | undefined> => {
    const until = performance.now() + withinMs
    while (reigns.length < number && performance.now() < until) await sleep(10)
    return reigns[number - 1]
  }

  const first = await reign(1, 20_000)
  if (first === undefined) throw new Error('nobody leads')
  await decided(first)
  say(`${first.candidate.name} is killed`)
  first.candidate.signal('SIGKILL')
  const second = await reign(2, LEASE_MS + SLACK_MS)
  check('another leads when the lease of the dead one is over', second !== undefined)
  if (second === undefined) return

  await decided(second)
  say(`${second.candidate.name} is stopped, and does not know`)
  second.candidate.signal('SIGSTOP')
  const third = await reign(3, LEASE_MS + SLACK_MS)
  check('and when that of one that is stopped is', third !== undefined)
  if (third === undefined) return

  // Else the old one would not be seen to come after it.
  await decided(third)
  const refusal = second.candidate.next('refused')
  const refused = Promise.race([refusal.then(() => true), sleep(2_000, false)])
  refused.catch(() => undefined)
  say(`${second.candidate.name} is woken`)
  second.candidate.signal('SIGCONT')
  check('the write of a leader that was replaced is refused', await refused)

  for (const candidate of candidates) candidate.signal('SIGTERM')
  await Promise.all(candidates.map(async ({ ended }) => await ended))
  const { rows } = await app.transaction((tx) =>
    tx.query<Decision>('select leader, token::int as token from decision order by id'),
  )
  const tokens = reigns.map(({ token }) => token)
  say(`${rows.length} decisions under tokens ${tokens.join(', ')}`)
  check(
    'tokens rise',
    tokens.length >= 3 && tokens.every((token, n) => n === 0 || token > (tokens[n - 1] ?? 0)),
  )
  check(
    'no decision comes after one of a later leader',
    rows.length >= tokens.length &&
      rows.every(({ token }, n) => n === 0 || token >= (rows[n - 1]?.token ?? 0)),
  )
})
