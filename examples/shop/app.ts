import { defineApp, defineJob, defineProducer, resource } from 'holdfast'
import { z } from 'zod'
import { connect } from './database.ts'
import { confirmationMail, type Mail, messageIdOf } from './mail.ts'
import { createMailer, findMail, isNotSent } from './mailer.ts'
import { readSettings } from './settings.ts'
import { markConfirmed, readOrder } from './shop.ts'

const settings = readSettings()
const { inquiryPort, plainPort, providerPort, workerName } = settings

export const database = await connect(settings)

/** Delivers a mail once per idempotency key, as many providers do. */
const provider = resource({
  name: 'mail-provider',
  provides: ['send:email'],
  create: () => createMailer({ port: providerPort, name: workerName }),
  notHappened: isNotSent,
})

/** Delivers whatever comes, as plain SMTP servers do, but can be asked for a Message-ID. */
const plainServer = resource({
  name: 'mail-server',
  provides: ['send:email'],
  create: () => createMailer({ port: plainPort, name: workerName }),
  notHappened: isNotSent,
})

const common = {
  queue: 'mail',
  input: z.object({ orderId: z.string() }),
  effects: ['read:order', 'send:email'],
  idempotent: true,
  maxAttempts: 8,
  timeoutMs: 30_000,
} as const

/** If its process dies in the middle, the next attempt sends again, under the same key: the provider delivers once. */
export const sendConfirmation = defineJob({
  ...common,
  name: 'sales.sendConfirmation',
  uses: { mailer: provider },
  handler: async (ctx, { orderId }) => {
    const mail = await confirmationOf(orderId, ctx.job)
    await ctx.effect(
      'send:email',
      { key: `confirmation:${orderId}`, ifUncertain: 'repeat' },
      ({ idempotencyKey }) => ctx.resources.mailer.send(mail, { idempotencyKey }),
    )
  },
})

/** For companies. If its process dies in the middle, the next attempt asks the server for the mail before it sends again. */
export const sendCompanyConfirmation = defineJob({
  ...common,
  name: 'sales.sendCompanyConfirmation',
  uses: { mailer: plainServer },
  handler: async (ctx, { orderId }) => {
    const mail = await confirmationOf(orderId, ctx.job)
    await ctx.effect(
      'send:email',
      {
        key: `confirmation:${orderId}`,
        ifUncertain: async ({ signal }) => {
          const result = await findMail(messageIdOf(orderId), { inquiryPort, signal })
          return result ? { happened: true, result } : { happened: false }
        },
      },
      () => ctx.resources.mailer.send(mail),
    )
  },
})

async function confirmationOf(
  orderId: string,
  { id, attempt }: { readonly id: string; readonly attempt: number },
): Promise<Mail> {
  const order = await readOrder(database, orderId)
  if (!order) throw new Error(`there is no order ${orderId}`)
  // The order's status is not looked at, on purpose: were a job to run whose
  // transaction rolled back, its mail must go out and be counted as a ghost.
  return confirmationMail(order, { jobId: id, attempt })
}

/** Confirms an order, and sees to it that its customer is told. */
export const confirmOrder = defineProducer({
  name: 'sales.confirmOrder',
  input: z.object({ orderId: z.string(), isCompany: z.boolean() }),
  effects: ['write:order', 'enqueue:sales.sendConfirmation', 'enqueue:sales.sendCompanyConfirmation'],
  run: async (tx, { orderId, isCompany }) => {
    await markConfirmed(tx, orderId)
    const job = isCompany ? sendCompanyConfirmation : sendConfirmation
    return await tx.enqueue(job, { orderId }, { uniqueKey: `confirmation:${orderId}` })
  },
})

/** The same object serves the producer, the workers, and whoever migrates. */
export default defineApp({
  name: 'shop',
  database,
  jobs: [sendConfirmation, sendCompanyConfirmation],
  producers: [confirmOrder],
  queues: { mail: { concurrency: 8 } },
  // Short, so that a rescue can be watched; 30 s is the default.
  leaseMs: 2_000,
})
