import { entryJson, openKeys, valueText } from '../../admin/keys.ts'
import { at } from '../../admin/time-text.ts'
import { limits } from '../../base/limits.ts'
import { command, numberOption } from '../command.ts'
import { bigintOption, keyArgs, spaceOf } from '../key-options.ts'
import { openDatabase } from '../open-database.ts'

/** What the history has of a key, newest first. */
export const keysHistory = command({
  name: 'keys history',
  description: 'List the revisions that are kept of a key, newest first',
  args: {
    key: { type: 'positional', required: true, description: 'The key' },
    limit: {
      type: 'string',
      valueHint: 'rows',
      description: 'Revisions of a page: 1 to 4,096. Default: 100',
    },
    before: {
      type: 'string',
      valueHint: 'revision',
      description: 'The next page: only revisions below this one',
    },
    ...keyArgs,
  },
  async run({ args, output }) {
    const limit = numberOption('--limit', args.limit, limits.keyPageRows)
    const before = bigintOption('--before', args.before)
    await using opened = await openDatabase(args)
    await using open = openKeys(opened)
    const revisions = await open.keys.revisions(args.key, { ...spaceOf(args), limit, before })
    const asJson = revisions.map(({ revision, entry, modifiedAt }) =>
      entry === undefined ? { revision, deleted: true, modifiedAt } : { ...entryJson(entry), deleted: false },
    )
    output.print({ revisions: asJson }, () =>
      output.table(
        revisions,
        [
          { title: 'revision', value: ({ revision }) => revision, right: true },
          { title: 'value', value: ({ entry }) => (entry === undefined ? 'deleted' : valueText(entry)) },
          { title: 'at', value: ({ modifiedAt }) => at(modifiedAt) },
        ],
        'nothing is kept of it',
      ),
    )
  },
})
