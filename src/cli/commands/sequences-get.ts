import { CliError } from '../cli-error.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { sequenceArgs, sequenceLines } from '../sequence-lines.ts'

/** Looks at a sequence without drawing from it. */
export const sequencesGet = command({
  name: 'sequences get',
  description: 'Show a sequence: the value drawn last, its settings, how many values are left',
  args: sequenceArgs,
  async run({ args, output }) {
    const { name, tenant } = args
    await using opened = await openDatabase(args)
    const info = await opened.coordination.sequences.get(name, { tenant })
    if (info === undefined) throw new CliError(`there is no sequence "${name}"; check name and tenant`)
    output.print({ tenant: tenant ?? '', ...info }, () => sequenceLines(info, output))
  },
})
