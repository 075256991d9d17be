import { entryJson, openKeys, valueText } from '../../admin/keys.ts'
import { at } from '../../admin/time-text.ts'
import { limits } from '../../base/limits.ts'
import { command, numberOption } from '../command.ts'
import { instantOption, keyArgs, spaceOf } from '../key-options.ts'
import { openDatabase } from '../open-database.ts'

/** A page of keys in the order of their bytes: those that start with a text, or those of a bucket. */
export const keysList = command({
  name: 'keys list',
  description: 'List keys that start with a text, or those of a bucket, a page at a time',
  args: {
    prefix: { type: 'positional', required: false, description: 'What keys start with. Default: all' },
    bucket: { type: 'string', description: 'Keys directly in this bucket, in place of a prefix' },
    'as-of': { type: 'string', valueHint: 'instant', description: 'As they were then' },
    limit: { type: 'string', valueHint: 'rows', description: 'Keys of a page: 1 to 4,096. Default: 100' },
    after: {
      type: 'string',
      valueHint: 'cursor',
      description: 'The next page: the cursor that the page before gave',
    },
    ...keyArgs,
  },
  async run({ args, output }) {
    const { prefix, bucket } = args
    const options = {
      ...spaceOf(args),
      ...(bucket === undefined ? { prefix: prefix ?? '' } : { bucket, prefix }),
      asOf: instantOption('--as-of', args['as-of']),
      limit: numberOption('--limit', args.limit, limits.keyPageRows),
      cursor: args.after,
    }
    await using opened = await openDatabase(args)
    await using open = openKeys(opened)
    const { entries, cursor } = await open.keys.list(options)
    output.print({ entries: entries.map(entryJson), next: cursor }, () => [
      ...output.table(
        entries,
        [
          { title: 'key', value: (entry) => entry.key },
          { title: 'revision', value: (entry) => entry.revision, right: true },
          { title: 'value', value: valueText },
          { title: 'set', value: (entry) => at(entry.modifiedAt) },
          { title: 'expires', value: (entry) => (entry.expiresAt === null ? null : at(entry.expiresAt)) },
        ],
        'no keys',
      ),
      ...(cursor === null ? [] : [`more: --after ${cursor}`]),
    ])
  },
})
