import { defineApp, defineJob } from 'holdfast'
import { createTransport } from 'nodemailer'
import { z } from 'zod'
import { connect } from './database.ts'
import { confirmationMail } from './mail.ts'
import { readSettings } from './settings.ts'
import { readOrder } from './shop.ts'

const settings = readSettings()

export const database = await connect(settings)

/** Connects with the first mail, so a process that only enqueues never does. */
export const mailer = createTransport({
  host: '127.0.0.1',
  port: settings.smtpPort,
  name: settings.workerName,
  ignoreTLS: true,
  pool: true,
  maxConnections: 8,
  maxMessages: Number.POSITIVE_INFINITY,
})

export const sendConfirmation = defineJob({
  name: 'sales.sendConfirmation',
  queue: 'mail',
  input: z.object({ orderId: z.string() }),
  idempotent: true,
  maxAttempts: 8,
  timeoutMs: 30_000,
  handler: async (ctx, { orderId }) => {
    const order = await readOrder(database, orderId)
    if (!order) throw new Error(`there is no order ${orderId}`)
    // The order's status is not looked at, on purpose: were a job to run whose
    // transaction rolled back, its mail must go out and be counted as a ghost.
    const mail = confirmationMail(order, { jobId: String(ctx.job.id), attempt: ctx.job.attempt })
    await mailer.sendMail(mail)
  },
})

/** The same object serves the producer, the workers, and whoever migrates. */
export default defineApp({
  name: 'shop',
  database,
  jobs: [sendConfirmation],
  queues: { mail: { concurrency: 8 } },
  // Short, so that a rescue can be watched; 30 s is the default.
  leaseMs: 2_000,
})
