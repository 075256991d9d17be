import { command, int8Option } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { sequenceArgs, sequenceLines } from '../sequence-lines.ts'

/** Creates a sequence; one that exists is left as it is. */
export const sequencesCreate = command({
  name: 'sequences create',
  description: 'Create a sequence; its first value is initial + increment',
  args: {
    ...sequenceArgs,
    initial: { type: 'string', valueHint: 'value', description: 'The value before the first. Default: 0' },
    increment: { type: 'string', valueHint: 'step', description: 'From one value to the next. Default: 1' },
    max: { type: 'string', valueHint: 'value', description: 'No value is larger. Default: 2^63-1' },
    keep: { type: 'boolean', description: 'No error if it exists with the same settings' },
  },
  async run({ args, output }) {
    const { name, tenant } = args
    await using opened = await openDatabase(args)
    const info = await opened.coordination.sequences.create(name, {
      tenant,
      initial: int8Option('initial', args.initial),
      increment: int8Option('increment', args.increment),
      max: int8Option('max', args.max),
      ifExists: args.keep === true ? 'keep' : 'throw',
    })
    output.print({ tenant: tenant ?? '', ...info }, () => sequenceLines(info, output))
  },
})
