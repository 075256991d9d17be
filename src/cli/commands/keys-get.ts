import { entryJson, openKeys, valueText } from '../../admin/keys.ts'
import { at } from '../../admin/time-text.ts'
import { oneLine } from '../../base/one-line.ts'
import { CliError } from '../cli-error.ts'
import { command } from '../command.ts'
import { bigintOption, instantOption, keyArgs, spaceOf } from '../key-options.ts'
import { openDatabase } from '../open-database.ts'

/** One key with its value: now, at a revision, or as of a time. */
export const keysGet = command({
  name: 'keys get',
  description: 'Show a key: its value, revision and expiry',
  args: {
    key: { type: 'positional', required: true, description: 'The key' },
    revision: { type: 'string', valueHint: 'number', description: 'The value it had at this revision' },
    'as-of': { type: 'string', valueHint: 'instant', description: 'The value it had then' },
    ...keyArgs,
  },
  async run({ args, output }) {
    const options = {
      ...spaceOf(args),
      atRevision: bigintOption('--revision', args.revision),
      asOf: instantOption('--as-of', args['as-of']),
    }
    await using opened = await openDatabase(args)
    await using open = openKeys(opened)
    const entry = await open.keys.get(args.key, options)
    if (entry === undefined)
      throw new CliError(`there is no key "${oneLine(args.key)}"; check key, tenant and durability`)
    output.print(entryJson(entry), () => [
      oneLine(valueText(entry)),
      `revision ${entry.revision}, set ${at(entry.modifiedAt)}${entry.expiresAt === null ? '' : `, expires ${at(entry.expiresAt)}`}`,
    ])
  },
})
