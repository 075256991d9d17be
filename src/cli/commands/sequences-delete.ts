import { oneLine } from '../../base/one-line.ts'
import { CliError } from '../cli-error.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { sequenceArgs } from '../sequence-lines.ts'

/** Deletes a sequence. */
export const sequencesDelete = command({
  name: 'sequences delete',
  description: 'Delete a sequence; created again it starts afresh, and values come twice',
  args: sequenceArgs,
  async run({ args, output }) {
    const { name, tenant } = args
    await using opened = await openDatabase(args)
    const isGone = await opened.coordination.sequences.delete(name, { tenant })
    if (!isGone) throw new CliError(`there is no sequence "${name}"; check name and tenant`)
    output.print({ tenant: tenant ?? '', name, deleted: true }, () => [`"${oneLine(name)}" is deleted`])
  },
})
