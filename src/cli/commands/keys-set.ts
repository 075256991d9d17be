import { entryJson, openKeys, valueText } from '../../admin/keys.ts'
import { limits } from '../../base/limits.ts'
import { oneLine } from '../../base/one-line.ts'
import { CliError } from '../cli-error.ts'
import { command, numberOption } from '../command.ts'
import { bigintOption, keyArgs, spaceOf } from '../key-options.ts'
import { openDatabase } from '../open-database.ts'

/** Sets a key to a text, if the conditions hold. */
export const keysSet = command({
  name: 'keys set',
  description: 'Set a key to a text; ends with 1 if a condition does not hold',
  args: {
    key: { type: 'positional', required: true, description: 'The key' },
    value: { type: 'positional', required: true, description: 'The text' },
    'ttl-ms': { type: 'string', valueHint: 'ms', description: 'Absent after so long. Default: never' },
    'if-absent': { type: 'boolean', description: 'Only if the key is not there' },
    'if-present': { type: 'boolean', description: 'Only if the key is there' },
    'if-value': { type: 'string', valueHint: 'text', description: 'Only if it has this value' },
    'if-revision': {
      type: 'string',
      valueHint: 'number',
      description: 'Only if its newest revision is this; -1: never written',
    },
    norev: { type: 'boolean', description: 'Leave this value out of the history' },
    ...keyArgs,
  },
  async run({ args, output }) {
    const options = {
      ...spaceOf(args),
      ttlMs: numberOption('--ttl-ms', args['ttl-ms'], limits.keyTtlMs),
      ifAbsent: args['if-absent'],
      ifPresent: args['if-present'],
      ifValue: args['if-value'],
      ifRevision: bigintOption('--if-revision', args['if-revision']),
      norev: args.norev,
    }
    await using opened = await openDatabase(args)
    await using open = openKeys(opened)
    const answer = await open.keys.set(args.key, args.value, options)
    if (!answer.ok) {
      const { revision, current } = answer
      const there =
        current === undefined ? 'it is not there' : `it is ${oneLine(valueText(current)).slice(0, 200)}`
      output.print(
        { ok: false, revision, current: current === undefined ? null : entryJson(current) },
        () => [`not set: ${there}, revision ${revision}`],
      )
      throw new CliError('a condition does not hold; nothing was changed')
    }
    output.print(answer, () => [`set: revision ${answer.revision}`])
  },
})
