import { listenToTest, tell } from '../../support/program.ts'
import { appOver, note } from '../homes.ts'

/** A producer: confirms an order and enqueues its mail in one transaction, telling how far it is. */
listenToTest()
const [url = ''] = process.argv.slice(2)
const app = appOver(url, { name: 'producer' })

const id = await app.transaction(async (tx) => {
  await tx.query('insert into orders values (1, true)')
  const answer = await tx.enqueue(note, { order: 1 })
  tell('enqueued', { id: answer.id })
  // Gives the killer time; nobody waits for it otherwise.
  await new Promise((resolve) => setTimeout(resolve, 500))
  return answer.id
})
tell('committed', { id })
setInterval(() => {}, 1000)
