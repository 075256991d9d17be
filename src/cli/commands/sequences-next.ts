import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { drawArgs, sequenceArgs } from '../sequence-lines.ts'

/** Draws one value, and prints nothing else. */
export const sequencesNext = command({
  name: 'sequences next',
  description: 'Draw the next value of a sequence and print it',
  args: { ...sequenceArgs, ...drawArgs },
  async run({ args, output }) {
    const { name, tenant } = args
    await using opened = await openDatabase(args)
    const value = await opened.coordination.sequences.next(name, {
      tenant,
      idempotencyKey: args['idempotency-key'],
    })
    output.print({ value }, () => [String(value)])
  },
})
