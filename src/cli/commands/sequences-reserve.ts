import { command, int8Option } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { drawArgs, sequenceArgs } from '../sequence-lines.ts'

/** Draws a range of values. */
export const sequencesReserve = command({
  name: 'sequences reserve',
  description: 'Draw values that follow one another, and print the first and the last',
  args: {
    ...sequenceArgs,
    count: { type: 'string', required: true, valueHint: 'values', description: 'How many' },
    ...drawArgs,
  },
  async run({ args, output }) {
    const { name, tenant } = args
    const count = int8Option('count', args.count) as bigint
    await using opened = await openDatabase(args)
    const range = await opened.coordination.sequences.reserve(name, count, {
      tenant,
      idempotencyKey: args['idempotency-key'],
    })
    output.print(range, () => [`${range.first}..${range.last}`])
  },
})
