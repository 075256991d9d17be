import type { Client, Facts, LoggedCall } from '../call-log.ts'
import type { KeyCall, KeyRead, KeyWrite } from '../checkers/key-model.ts'
import { checkKeys } from '../checkers/keys.ts'
import type { Workload } from '../workload.ts'

const KEYS = 3
const EPOCH_MS = 1500

/** Reads, writes and deletes of a few keys, plain and by every condition; a client tries again by what it was told. */
export const registerWorkload: Workload = {
  name: 'register',
  enoughTurns: 200,
  statements: ['set_key', 'set_key_if', 'delete_key', 'get_key'],
  async turn(client) {
    const key = keyOf(client, client.epoch(EPOCH_MS), client.random.whole(1, KEYS))
    const known = await read(client, key)
    const answer = await write(client, key, conditionsOf(client, known))
    if (answer?.applied !== false || client.random.chance(0.5)) return
    await write(client, key, { revision: String(answer.revision) })
  },
  async finish(client) {
    for (let epoch = 0; epoch <= client.epoch(EPOCH_MS); epoch += 1)
      for (let number = 1; number <= KEYS; number += 1) await read(client, keyOf(client, epoch, number))
  },
  check: (calls) => checkKeys(calls.map(keyCallOf)),
}

function keyOf({ run }: Client, epoch: number, number: number): string {
  return `${run}-register-${epoch}-${number}`
}

/** As they are logged: revisions are text there. */
interface Conditions {
  readonly absent?: true
  readonly value?: string
  readonly revision?: string
}

type Read = NonNullable<KeyRead['answer']>
type Written = NonNullable<KeyWrite['answer']>

async function read(client: Client, key: string): Promise<Read | undefined> {
  const act = async (): Promise<Read> => {
    const entry = await client.app.keys.get(key)
    return entry === undefined ? { value: null } : { value: entry.text(), revision: entry.revision }
  }
  return await client.call('register', { kind: 'read', key }, act, (answer) => ({ ...answer }))
}

function conditionsOf({ random }: Client, known: Read | undefined): Conditions {
  const roll = random.next()
  if (roll < 0.3) return {}
  if (roll < 0.4 || known === undefined) return { absent: true }
  if (roll < 0.7 && known.value !== null) return { value: known.value }
  return known.revision === undefined ? { absent: true } : { revision: String(known.revision) }
}

async function write(client: Client, key: string, conditions: Conditions): Promise<Written | undefined> {
  const { keys } = client.app
  const { absent, value: ifValue, revision } = conditions
  const ifRevision = revision === undefined ? undefined : BigInt(revision)
  // A delete has no condition that the key be absent.
  const value = absent !== true && client.random.chance(0.2) ? null : `v-${client.unique()}`
  const act = async (): Promise<Written> => {
    if (value === null) {
      const { ok, revision: at } = await keys.delete(key, { ifValue, ifRevision })
      return { applied: ok, revision: at }
    }
    const answer = await keys.set(key, value, { ifAbsent: absent, ifValue, ifRevision })
    if (answer.ok) return { applied: true, revision: answer.revision }
    return { applied: false, revision: answer.revision, current: answer.current?.text() ?? null }
  }
  const asked = { kind: 'write', key, value, conditions }
  return await client.call('register', asked, act, (answer) => ({ ...answer }))
}

function keyCallOf({ asked, answer, ...recorded }: LoggedCall): KeyCall {
  const withRevision = (facts: Facts | undefined) => {
    const revision = facts?.['revision'] as string | undefined
    return revision === undefined ? facts : { ...facts, revision: BigInt(revision) }
  }
  const conditions = withRevision(asked['conditions'] as Facts | undefined)
  return { ...recorded, ...asked, conditions, answer: withRevision(answer) } as unknown as KeyCall
}
