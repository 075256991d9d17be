import fs from 'node:fs/promises'
import path from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { ensureBuilt } from '../../scripts/built.mjs'
import { codeBlocks, pages } from '../contracts/markdown.ts'
import { createDatabase } from '../support/database.ts'
import { root } from '../support/migrated.ts'
import { startProgram } from '../support/processes.ts'

// The README imports the package by its name.
beforeAll(() => {
  if (!ensureBuilt()) throw new Error('the package does not build')
})

/** What the README leaves to its reader. */
const MAILER = `function connectMailer(): Mailer {
  return {
    async send(mail, { idempotencyKey }) {
      console.log(JSON.stringify({ kind: 'sent', about: mail.about, idempotencyKey }))
    },
  }
}`

const MAIN = `import app, { sendConfirmation } from './app.ts'
import { confirmOrder } from './producer.ts'

await app.migrate()
const worker = app.worker()
await worker.start()
await confirmOrder('42')
const answer = await app.enqueue(sendConfirmation, { orderId: '42' })
const end = await app.job(answer.id).wait({ timeoutMs: 20_000 })
await app.close()
console.log(JSON.stringify({ kind: 'ended', state: end?.state }))
process.exit(0)
`

it("the README's first lines run as printed: an order confirmed in its transaction, one mail", async () => {
  const readme = pages().find(({ file }) => file === 'README.md')
  const [app, producer] = codeBlocks(readme ?? { file: '', text: '' }).filter(({ info }) => info === 'ts')
  await using db = await createDatabase({ migrated: false })
  await db.sql(`create table orders (id text primary key, status text)`)
  await db.sql(`insert into orders values ('42', 'new')`)
  const folder = path.join(root, '.holdfast', `readme-${process.pid}`)
  await fs.mkdir(folder, { recursive: true })
  try {
    const declared = 'declare function connectMailer(): Mailer'
    expect(app?.code).toContain(declared)
    await fs.writeFile(path.join(folder, 'app.ts'), String(app?.code).replace(declared, MAILER))
    await fs.writeFile(path.join(folder, 'producer.ts'), String(producer?.code))
    await fs.writeFile(path.join(folder, 'main.ts'), MAIN)
    const program = startProgram(path.join(folder, 'main.ts'), { env: { DATABASE_URL: db.url } })
    const exit = await program.exited

    expect(exit, program.output).toEqual({ code: 0, signal: null })
    expect(await db.sql(`select status from orders`)).toEqual([{ status: 'confirmed' }])
    expect(program.messages.filter(({ kind }) => kind === 'sent')).toMatchObject([{ about: '42' }])
    expect(program.messages.at(-1)).toMatchObject({ kind: 'ended', state: 'completed' })
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
})
