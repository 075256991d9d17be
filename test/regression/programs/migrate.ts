import { appOver, note } from '../../integration/homes.ts'
import { listenToTest, tell } from '../../support/program.ts'

/** Migrates the schema it is told, then enqueues one job, and tells how that went. */
const [url = ''] = process.argv.slice(2)
listenToTest((message) => void migrateAndEnqueue(String(message['schema'])))
setInterval(() => {}, 1000)
tell('ready')

async function migrateAndEnqueue(schema: string): Promise<void> {
  const app = appOver(url, { schema })
  try {
    const { applied } = await app.migrate()
    await app.enqueue(note, process.pid)
    tell('migrated', { schema, applied })
  } catch (error) {
    tell('migrated', { schema, applied: [], error: String(error) })
  } finally {
    await app.close()
  }
}
