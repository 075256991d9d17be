import type { Client, LoggedCall } from '../call-log.ts'
import { type BankCall, checkBank } from '../checkers/bank.ts'
import type { Workload } from '../workload.ts'

const ACCOUNTS = ['bank/a', 'bank/b', 'bank/c', 'bank/d'] as const
const OPENING = 100
const opening = Object.fromEntries(ACCOUNTS.map((account) => [account, OPENING]))

const TRANSFER = `
let a = get @from
let b = get @to
if to_int(a) < to_int(@amount) then return 'refused' end
set @from to_int(a) - to_int(@amount)
set @to to_int(b) + to_int(@amount)
return 'moved'`

const READ_EACH = `
let a = get 'bank/a'
let b = get 'bank/b'
let c = get 'bank/c'
let d = get 'bank/d'
return [a, b, c, d]`

const READ_BUCKET = "let all = get by bucket 'bank' return all"

/** Scripts that move money between a few accounts, and scripts that read them all: key by key, or as a bucket. */
export const bankWorkload: Workload = {
  name: 'bank',
  enoughTurns: 200,
  statements: ['run_script'],
  async prepare({ app }) {
    for (const account of ACCOUNTS) await app.script('set @account @opening', { account, opening: OPENING })
  },
  async turn(client) {
    const { random } = client
    if (random.chance(0.4)) return await read(client)
    const from = random.pick(ACCOUNTS)
    const to = random.pick(ACCOUNTS.filter((other) => other !== from))
    const asked = { from, to, amount: random.whole(1, 60) }
    const act = async () => await client.app.script(TRANSFER, asked)
    await client.call('bank', { kind: 'transfer', ...asked }, act, (result) => ({
      moved: result.text() === 'moved',
    }))
  },
  finish: read,
  check: (calls) => checkBank(calls.map(bankCallOf), { opening }),
}

async function read(client: Client): Promise<void> {
  const text = client.random.chance(0.5) ? READ_EACH : READ_BUCKET
  const act = async () => await client.app.script(text)
  await client.call('bank', { kind: 'read' }, act, ({ values }) => ({
    balances: Object.fromEntries(
      values.map(({ value }, place) => [ACCOUNTS[place], Number(Buffer.from(value).toString())]),
    ),
  }))
}

function bankCallOf({ asked, answer, ...recorded }: LoggedCall): BankCall {
  return { ...recorded, ...asked, ...answer } as unknown as BankCall
}
