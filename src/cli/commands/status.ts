import { readStatus, schemaStatus } from '../../admin/status.ts'
import { SchemaVersionError } from '../../base/errors.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { statusLines } from '../status-lines.ts'
import { withAppFile } from '../with-app-file.ts'

/** One screen: schema, workers, queues, and everything that waits for somebody. */
export const status = command({
  name: 'status',
  description: 'Show schema, workers, queues, and what waits for whom, on one screen',
  args: { file: { type: 'positional', required: false, description: 'App file' } },
  async run({ args, output }) {
    await using opened = await openDatabase(withAppFile(args), { needsSchema: false })
    const schema = await schemaStatus(opened.database)
    if (schema.state === 'missing' || schema.state === 'older')
      throw new SchemaVersionError({
        schema: schema.name,
        found: schema.version ?? undefined,
        expected: schema.expected,
      })
    const read = await readStatus(opened.database, schema)
    output.print(
      {
        ...read,
        unserved: read.unserved.map(({ name, available, scheduled, parked }) => ({
          name,
          available,
          scheduled,
          parked,
        })),
      },
      () => statusLines(read, output),
    )
  },
})
