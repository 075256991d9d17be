import { openKeys } from '../../admin/keys.ts'
import { CliError } from '../cli-error.ts'
import { command } from '../command.ts'
import { bigintOption, keyArgs, spaceOf } from '../key-options.ts'
import { openDatabase } from '../open-database.ts'

/** Deletes a key; its history stays. */
export const keysDelete = command({
  name: 'keys delete',
  description: 'Delete a key; ends with 1 if it is not there or a condition does not hold',
  args: {
    key: { type: 'positional', required: true, description: 'The key' },
    'if-value': { type: 'string', valueHint: 'text', description: 'Only if it has this value' },
    'if-revision': {
      type: 'string',
      valueHint: 'number',
      description: 'Only if its newest revision is this',
    },
    ...keyArgs,
  },
  async run({ args, output }) {
    const options = {
      ...spaceOf(args),
      ifValue: args['if-value'],
      ifRevision: bigintOption('--if-revision', args['if-revision']),
    }
    await using opened = await openDatabase(args)
    await using open = openKeys(opened)
    const answer = await open.keys.delete(args.key, options)
    if (!answer.ok) {
      const reason =
        answer.revision === -1n ? 'it was never written' : `its newest revision is ${answer.revision}`
      throw new CliError(`not deleted: it is not there, or a condition does not hold; ${reason}`)
    }
    output.print(answer, () => [`deleted: revision ${answer.revision}`])
  },
})
