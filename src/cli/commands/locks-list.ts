import { at } from '../../admin/time-text.ts'
import { limits } from '../../base/limits.ts'
import { listLocks } from '../../locks/list-locks.ts'
import { command, numberOption } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** A page of the locks that are held. */
export const locksList = command({
  name: 'locks list',
  description: 'List locks that are held, by tenant and resource',
  args: {
    tenant: { type: 'string', description: 'Those of this tenant. Default: of all' },
    ephemeral: { type: 'boolean', description: 'Those that a crash of the server frees' },
    limit: { type: 'string', valueHint: 'rows', description: 'Rows of a page: 1 to 1,000. Default: 50' },
    after: {
      type: 'string',
      valueHint: 'cursor',
      description: 'The next page: the cursor that the page before gave',
    },
  },
  async run({ args, output }) {
    const { tenant, after } = args
    const limit = numberOption('--limit', args.limit, limits.pageRows)
    await using opened = await openDatabase(args)
    const durability = args.ephemeral === true ? 'ephemeral' : 'persistent'
    const page = await listLocks(() => opened.database, { tenant, durability, limit, after })
    output.print(page, () => [
      ...output.table(
        page.locks,
        [
          { title: 'resource', value: (lock) => lock.resource },
          { title: 'tenant', value: (lock) => (lock.tenant === '' ? null : lock.tenant) },
          { title: 'owner', value: (lock) => lock.owner },
          { title: 'fencing token', value: (lock) => lock.fencingToken, right: true },
          { title: 'acquired', value: (lock) => at(lock.acquiredAt) },
          { title: 'lease ends', value: (lock) => at(lock.expiresAt) },
        ],
        'no locks are held',
      ),
      ...(page.next === null ? [] : [`more: --after ${page.next}`]),
    ])
  },
})
