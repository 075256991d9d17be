import { setTimeout as sleep } from 'node:timers/promises'
import app, { exportJob, openStorage } from './app.ts'
import { createEntries, fillEntries } from './entries.ts'
import { businessKey } from './export-entries.ts'

/** Exports 100,000 rows, on the embedded database unless there is a server. Kill it on its way (`kill -9`), and run it again: it goes on where it was. */

const ROWS = 100_000
const request = { tenant: 'acme', exportId: process.argv[2] ?? '2026-11' }

await app.migrate()
await app.transaction(async (tx) => {
  await createEntries(tx)
  await fillEntries(tx, request.tenant, ROWS)
})
const { id, status } = await app.enqueue(exportJob, request, { uniqueKey: businessKey(request) })
console.log(`job ${id}${status === 'existing' ? ', begun before' : ''}`)

const worker = app.worker()
await worker.start()
const ended = app.job(id).wait()
const isOver = ended.then(() => true)
while (!(await Promise.race([isOver, sleep(300, false)]))) {
  const progress = (await app.job(id).get())?.progress
  if (progress !== undefined) console.log(`${Math.round(progress.fraction * 100)} %, ${progress.note}`)
}
console.log(JSON.stringify((await ended)?.result))
console.log(`published: ${(await openStorage().of(request.tenant).list()).join(', ')}`)
await app.close()
