import { showLock } from '../../admin/locks.ts'
import { at } from '../../admin/time-text.ts'
import { oneLine } from '../../base/one-line.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** Who holds one lock, and who took it by force before. */
export const locksShow = command({
  name: 'locks show',
  description: 'Show who holds a lock, until when, and who took it from a holder before',
  args: {
    resource: { type: 'positional', required: true, description: 'What is locked' },
    tenant: { type: 'string', description: 'Tenant of the lock. Default: none' },
    ephemeral: { type: 'boolean', description: 'The lock that a crash of the server frees' },
  },
  async run({ args, output }) {
    const { resource, tenant } = args
    const durability = args.ephemeral === true ? 'ephemeral' : 'persistent'
    await using opened = await openDatabase(args)
    const details = await showLock(opened.database, { resource, tenant, durability })
    const { lock, holder, audit } = details
    output.print({ ...lock, held: holder !== null, ...holder, audit }, () => [
      output.heading(oneLine(`"${lock.resource}"`)),
      ...(holder === null
        ? ['  nobody holds it']
        : [
            `  owner          ${oneLine(holder.owner)}`,
            `  fencing token  ${holder.fencingToken}`,
            `  acquired       ${at(holder.acquiredAt)}`,
            `  lease ends     ${at(holder.expiresAt)}`,
          ]),
      ...(audit.length === 0 ? [] : ['', output.heading('taken by force')]),
      ...audit.map((row) => oneLine(`  ${at(row.at)}  by ${row.actor}: ${row.note ?? '-'}`)),
    ])
  },
})
