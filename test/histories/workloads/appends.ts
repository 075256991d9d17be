import type { Client, LoggedCall } from '../call-log.ts'
import { checkAppends } from '../checkers/append.ts'
import type { AppendStep, AppendTransaction } from '../checkers/append-history.ts'
import type { Workload } from '../workload.ts'

const LISTS = 4
const EPOCH_MS = 1500

/** Scripts that read lists and append to them, some of which throw in the end. A list is text: its elements, each with `;` behind. */
export const appendWorkload: Workload = {
  name: 'append',
  enoughTurns: 200,
  statements: ['run_script'],
  async turn(client) {
    const id = client.unique()
    const steps = Array.from({ length: client.random.whole(1, 4) }, (_, place): AppendStep => {
      const key = listOf(client, client.epoch(EPOCH_MS), client.random.whole(1, LISTS))
      return client.random.chance(0.5)
        ? { kind: 'read', key }
        : { kind: 'append', key, element: `${id}.${place}` }
    })
    await runSteps(client, steps, client.random.chance(0.08))
  },
  async finish(client) {
    for (let epoch = 0; epoch <= client.epoch(EPOCH_MS); epoch += 1) {
      const keys = Array.from({ length: LISTS }, (_, list) => listOf(client, epoch, list + 1))
      await runSteps(
        client,
        keys.map((key) => ({ kind: 'read', key })),
        false,
      )
    }
  },
  check: (calls) => checkAppends(calls.map(transactionOf)),
}

function listOf({ run }: Client, epoch: number, number: number): string {
  return `${run}-list-${epoch}-${number}`
}

async function runSteps(client: Client, steps: readonly AppendStep[], throws: boolean): Promise<void> {
  const { text, params } = scriptOf(steps, throws)
  const act = async () => await client.app.script(text, params)
  await client.call('append', { steps }, act, ({ values }) => ({
    lists: values.map(({ value }) => Buffer.from(value).toString()),
  }))
}

/** Names and elements are parameters: scripts of the same shape have the same text. */
function scriptOf(steps: readonly AppendStep[], throws: boolean) {
  const params: Record<string, string> = {}
  const lines = steps.flatMap((step, place) => {
    params[`k${place}`] = step.key
    const read = `let v${place} = get @k${place}`
    if (step.kind === 'read') return [read]
    params[`e${place}`] = `${step.element};`
    return [read, `set @k${place} concat(to_str(v${place}), @e${place})`]
  })
  const reads = steps.flatMap(({ kind }, place) => (kind === 'read' ? `to_str(v${place})` : []))
  if (throws) lines.push("throw 'as planned'")
  else if (reads.length > 0) lines.push(`return [${reads.join(', ')}]`)
  return { text: lines.join('\n'), params }
}

function transactionOf({ asked, answer, ...recorded }: LoggedCall): AppendTransaction {
  const lists = [...((answer?.['lists'] ?? []) as readonly string[])]
  const steps = (asked['steps'] as readonly AppendStep[]).map((step): AppendStep => {
    if (step.kind === 'append' || recorded.outcome !== 'ok') return step
    return { ...step, list: (lists.shift() ?? '').split(';').filter((element) => element !== '') }
  })
  return { ...recorded, steps }
}
