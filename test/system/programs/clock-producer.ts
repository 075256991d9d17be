import { appOver, note } from '../../integration/homes.ts'
import { listenToTest, tell } from '../../support/program.ts'

/** Enqueues one job that is due in a minute, with whatever clock it was started under. */
listenToTest()
const [url = ''] = process.argv.slice(2)
const app = appOver(url)
await app.enqueue(note, 1, { delayMs: 60_000 })
await app.close()
tell('done')
