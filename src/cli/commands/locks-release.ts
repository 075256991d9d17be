import { takeLock } from '../../admin/locks.ts'
import { oneLine } from '../../base/one-line.ts'
import { CliError } from '../cli-error.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { userName } from '../user-name.ts'

/** Takes a lock from a holder that is gone. */
export const locksRelease = command({
  name: 'locks release',
  description:
    'Take a lock from its holder, before its lease ends; the fencing token is refused from then on',
  args: {
    resource: { type: 'positional', required: true, description: 'What is locked' },
    reason: { type: 'string', description: 'Why, for those who look later. Required' },
    by: { type: 'string', valueHint: 'name', description: 'Who does it. Default: the user of this process' },
    tenant: { type: 'string', description: 'Tenant of the lock. Default: none' },
    ephemeral: { type: 'boolean', description: 'The lock that a crash of the server frees' },
  },
  async run({ args, output }) {
    const { resource, tenant, reason } = args
    const durability = args.ephemeral === true ? 'ephemeral' : 'persistent'
    await using opened = await openDatabase(args)
    const lock = { resource, tenant, durability } as const
    const taken = await takeLock(opened.database, lock, { actor: args.by ?? userName(), reason })
    if (taken === undefined)
      throw new CliError(`nobody holds the lock on "${oneLine(resource)}"; nothing was changed`)
    output.print({ resource, tenant: tenant ?? '', durability, ...taken }, () => [
      oneLine(
        `"${resource}" is free: it was taken from ${taken.owner}, with fencing token ${taken.fencingToken}`,
      ),
    ])
  },
})
