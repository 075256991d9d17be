import type { Client, LoggedCall } from '../call-log.ts'
import { checkSequences, type SequenceCall } from '../checkers/sequences.ts'
import type { Workload } from '../workload.ts'

const SEQUENCES = 2
/** Keys that several processes use at the same time live so long. */
const KEY_EPOCH_MS = 50

/** Values, ranges, keyed requests repeated by one client and shared by several, and draws that are rolled back. */
export const sequenceWorkload: Workload = {
  name: 'sequence',
  enoughTurns: 150,
  statements: ['draw_values', 'commit'],
  async prepare({ app, run }) {
    for (let n = 1; n <= SEQUENCES; n += 1) await app.sequences.create(`${run}-${n}`)
  },
  async turn(client) {
    const { random } = client
    const sequence = `${client.run}-${random.whole(1, SEQUENCES)}`
    const roll = random.next()
    if (roll < 0.15) return await drawAndRollBack(client, sequence)
    if (roll < 0.45) return await drawByKey(client, sequence)
    await draw(client, { sequence, count: roll < 0.7 ? 1 : random.whole(1, 5) })
  },
  check: (calls) => checkSequences(calls.map(sequenceCallOf)),
}

interface Draw {
  readonly sequence: string
  readonly count: number
  readonly idempotencyKey?: string
}

async function draw(client: Client, asked: Draw): Promise<boolean> {
  const { sequence, count, idempotencyKey } = asked
  const { sequences } = client.app
  const act = async () => {
    if (count > 1) return await sequences.reserve(sequence, count, { idempotencyKey })
    const value = await sequences.next(sequence, { idempotencyKey })
    return { first: value, last: value }
  }
  const range = await client.call('sequence', { ...asked }, act, ({ first, last }) => ({ first, last }))
  return range !== undefined
}

/** Until it is answered, and sometimes once more: every answer has to be the same. */
async function drawByKey(client: Client, sequence: string): Promise<void> {
  const { random } = client
  const isShared = random.chance(0.5)
  const idempotencyKey = isShared
    ? `${sequence}/shared/${client.epoch(KEY_EPOCH_MS)}/${random.whole(1, 2)}`
    : `${sequence}/${client.unique()}`
  // Who uses a key has to ask for the same count.
  const asked = { sequence, count: isShared ? 3 : random.whole(1, 4), idempotencyKey }
  for (let tries = 1; tries <= 4; tries += 1) {
    const answered = await draw(client, asked)
    if (answered && random.chance(0.6)) return
  }
}

async function drawAndRollBack(client: Client, sequence: string): Promise<void> {
  const { app } = client
  const act = async () => {
    try {
      await app.transaction(async (tx) => {
        await app.sequences.next(sequence, { tx })
        throw new TurnedBack()
      })
    } catch (error) {
      if (!(error instanceof TurnedBack)) throw error
    }
  }
  await client.call('sequence', { sequence, count: 1, rolledBack: true }, act, () => ({}))
}

class TurnedBack extends Error {}

function sequenceCallOf({ asked, answer, ...recorded }: LoggedCall): SequenceCall {
  const { first, last } = (answer ?? {}) as { readonly first?: string; readonly last?: string }
  const isRolledBack = asked['rolledBack'] === true
  return {
    ...recorded,
    // Nothing of it may stay, whatever became of it.
    outcome: isRolledBack ? 'failed' : recorded.outcome,
    sequence: String(asked['sequence']),
    count: Number(asked['count']),
    idempotencyKey: asked['idempotencyKey'] as string | undefined,
    range: first === undefined ? undefined : { first: BigInt(first), last: BigInt(last ?? first) },
  }
}
