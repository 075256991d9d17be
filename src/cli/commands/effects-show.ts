import { type EffectDetails, showEffect } from '../../admin/show-effect.ts'
import { at } from '../../admin/time-text.ts'
import { oneLine } from '../../base/one-line.ts'
import { CliError } from '../cli-error.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { type Output, RawJson } from '../output.ts'

/** Everything about one effect: what is known of it and since when, and what people decided. */
export const effectsShow = command({
  name: 'effects show',
  description: 'Show what is known of one effect, and what the provider was given to ask it by',
  args: {
    name: { type: 'positional', required: true, description: 'What it does, such as send:email' },
    key: { type: 'positional', required: true, description: 'What it is for, such as confirmation:42' },
    tenant: { type: 'string', description: 'Tenant of the jobs. Default: none' },
  },
  async run({ args, output }) {
    const { name, key, tenant } = args
    await using opened = await openDatabase(args)
    const details = await showEffect(opened.database, { name, key, tenant })
    if (details === undefined)
      throw new CliError(`there is no effect ${name} "${key}"; check name, key and tenant`)
    const { facts, ...others } = details
    const raw = (text: string | null) => (text === null ? null : new RawJson(text))
    output.print({ ...facts, ...others, result: raw(facts.result), error: raw(facts.error) }, () =>
      effectLines(details, output),
    )
  },
})

function effectLines(details: EffectDetails, output: Output): readonly string[] {
  const { facts, explanation, idempotencyKey, audit } = details
  const rows: readonly (readonly [string, string | null])[] = [
    ['state', facts.held ? 'under way' : facts.state],
    ['why', explanation],
    ['tenant', facts.tenant === '' ? null : facts.tenant],
    ['idempotency key', idempotencyKey],
    ['calls', `${facts.calls}, of those before the newest in doubt: ${facts.doubts}`],
    ['intended', at(facts.intendedAt)],
    ['ended', facts.endedAt === null ? null : at(facts.endedAt)],
    ['held until', facts.heldUntil === null ? null : at(facts.heldUntil)],
    ['job', facts.jobId],
    ['fencing token', facts.fencingToken],
    ['jobs that ask', (facts.askingJobs as readonly string[] | null)?.join(', ') ?? null],
    ['result', facts.result],
    ['error', facts.error],
  ]
  const width = Math.max(...rows.map(([label]) => label.length))
  return [
    output.heading(oneLine(`${facts.name} "${facts.key}"`)),
    ...rows.flatMap(([label, text]) => (text === null ? [] : [`  ${label.padEnd(width)}  ${oneLine(text)}`])),
    ...(audit.length === 0 ? [] : ['', output.heading('decisions')]),
    ...audit.map((row) => oneLine(`  ${at(row.at)}  ${row.action} by ${row.actor}: ${row.note ?? '-'}`)),
  ]
}
