import { type ResolveAnswer, resolveEffect } from '../../admin/resolve-effect.ts'
import { CliError, usageError } from '../cli-error.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { userName } from '../user-name.ts'

/** Decides about an effect in doubt, and lets the jobs go on that were discarded for it. */
export const effectsResolve = command({
  name: 'effects resolve',
  description: 'Say what became of an effect in doubt; the jobs that were discarded for it run again',
  args: {
    name: { type: 'positional', required: true, description: 'What it does, such as send:email' },
    key: { type: 'positional', required: true, description: 'What it is for, such as confirmation:42' },
    tenant: { type: 'string', description: 'Tenant of the jobs. Default: none' },
    happened: { type: 'boolean', description: 'It happened: it is never called again' },
    result: { type: 'string', valueHint: 'json', description: 'What it gave, for the jobs. Default: null' },
    repeat: { type: 'boolean', description: 'It did not happen: the next attempt calls it' },
    reason: { type: 'string', description: 'How you know, for those who look later. Required' },
    by: { type: 'string', valueHint: 'name', description: 'Who decides. Default: the user of this process' },
    retry: {
      type: 'boolean',
      default: true,
      negativeDescription: 'Leave the jobs discarded',
      description: 'Make the jobs available again',
    },
  },
  async run({ args, output }) {
    const { name, key, tenant, result, reason } = args
    if ((args.happened === true) === (args.repeat === true))
      throw usageError('say what is known: --happened, or --repeat if it did not happen')
    await using opened = await openDatabase(args)
    const answer = await resolveEffect(
      opened,
      { name, key, tenant },
      {
        outcome: args.happened === true ? 'happened' : 'repeat',
        result,
        reason,
        actor: args.by ?? userName(),
        retry: args.retry !== false,
      },
    )
    if (!('jobs' in answer)) throw new CliError(`${name} "${key}" ${refusal(answer)}`)
    const { status, state, jobs } = answer
    output.print({ tenant: tenant ?? '', name, key, status, state, jobs }, () => [
      `${name} "${key}" ${status === 'unchanged' ? 'had been decided before: it' : 'is decided: it'} ${state === 'happened' ? 'happened' : 'did not happen, and may be called'}`,
      ...jobs.map(({ id, message }) => `job ${id}: ${message}`),
    ])
  },
})

function refusal(
  answer: Extract<ResolveAnswer, { readonly status: 'held' | 'not-in-doubt' | 'not-found' }>,
): string {
  switch (answer.status) {
    case 'held':
      return 'is being called at this moment; nothing was changed, wait for its end'
    case 'not-found':
      return 'is not in the ledger; check name, key and tenant'
    case 'not-in-doubt':
      return `is not in doubt: it ${answer.state === 'happened' ? 'happened' : 'did not happen, and may be called'}; nothing was changed`
  }
}
