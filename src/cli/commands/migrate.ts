import { schemaStatus } from '../../admin/status.ts'
import { migrate as migrateSchema, requireVersion } from '../../migrations/migrate.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { withAppFile } from '../with-app-file.ts'

/** Brings the schema to this release's version; with an app file it also registers the jobs for SQL. */
export const migrate = command({
  name: 'migrate',
  description: 'Bring the schema to this release, safe at every deploy and from any number of processes',
  args: { file: { type: 'positional', required: false, description: 'App file' } },
  async run({ args, output }) {
    await using opened = await openDatabase(withAppFile(args), { mayCreate: true, needsSchema: false })
    const { app, driver, database } = opened
    const result = app ? await app.migrate() : await migrateSchema(driver, database.schema)
    await requireVersion(driver, database.schema)
    const schema = await schemaStatus(database)
    output.print({ ...result, schema: schema.name }, () => [
      ...result.applied.map((name) => `applied ${name}`),
      `schema "${schema.name}" is at version ${schema.version}${result.applied.length === 0 ? '; nothing to do' : ''}`,
    ])
  },
})
