import { defineApp, defineJob } from '../../../src/index.ts'
import { listenToTest, tell } from '../../support/program.ts'
import { anything } from '../handlers.ts'

/** Confirms one order and enqueues its mail in one transaction; dies where it is told to. Argument: `{ database, dieAt }`. */
const { database, dieAt } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly database: string
  readonly dieAt: 'before commit' | 'after commit'
}
listenToTest()
const mail = defineJob({ name: 'mail', input: anything<string>(), idempotent: true, handler: () => {} })
const app = defineApp({ name: 'producer', database, jobs: [mail] })
await app.transaction(async (tx) => {
  await tx.query('update orders set confirmed = true where id = 1')
  const { id } = await tx.enqueue(mail, 'order 1')
  tell('enqueued', { id })
  if (dieAt === 'before commit') process.kill(process.pid, 'SIGKILL')
})
process.kill(process.pid, 'SIGKILL')
