import { appOver, note } from '../../integration/homes.ts'
import { listenToTest, tell } from '../../support/program.ts'

/** Enqueues for an instant of the past and for one an hour ahead, in whatever zone TZ says. */
listenToTest()
const [url = ''] = process.argv.slice(2)
const app = appOver(url)
const runAt = new Date('2026-01-01T09:00:00Z')
const past = await app.enqueue(note, 1, { runAt })
const readBack = (await app.job(past.id).get())?.runAt?.toISOString()
const ahead = await app.enqueue(note, 2, { delayMs: 3_600_000 })
await app.worker().start()
await app.job(past.id).wait({ timeoutMs: 15_000 })
const states = await Promise.all([past, ahead].map(async ({ id }) => (await app.job(id).get())?.state))
await app.close()
tell('done', { readBack, offset: new Date().getTimezoneOffset(), states })
