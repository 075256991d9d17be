import { defineApp, defineJob } from 'holdfast'
import { z } from 'zod'
import { connect } from './database.ts'
import { confirmationMail, type Mail, messageIdOf } from './mail.ts'
import { createMailer, findMail, isNotSent } from './mailer.ts'
import { readSettings } from './settings.ts'
import { readOrder } from './shop.ts'

const settings = readSettings()
const { inquiryPort, plainPort, providerPort, workerName } = settings

export const database = await connect(settings)

/** Takes a mail once per idempotency key, as many providers do. */
export const provider = createMailer({ port: providerPort, name: workerName })
/** Takes whatever comes, as plain SMTP servers do, but can be asked for a Message-ID. */
export const plainServer = createMailer({ port: plainPort, name: workerName })

const input = z.object({ orderId: z.string() })
const common = { queue: 'mail', input, idempotent: true, maxAttempts: 8, timeoutMs: 30_000 } as const

/** If its process dies in the middle, the next attempt sends again, under the same key: the provider delivers once. */
export const sendConfirmation = defineJob({
  ...common,
  name: 'sales.sendConfirmation',
  handler: async (ctx, { orderId }) => {
    const mail = await confirmationOf(orderId, ctx.job)
    await ctx.effect(
      'send:email',
      { key: `confirmation:${orderId}`, ifUncertain: 'repeat', notHappened: isNotSent },
      ({ idempotencyKey }) => provider.send(mail, { idempotencyKey }),
    )
  },
})

/** For companies. If its process dies in the middle, the next attempt asks the server for the mail before it sends again. */
export const sendCompanyConfirmation = defineJob({
  ...common,
  name: 'sales.sendCompanyConfirmation',
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
        notHappened: isNotSent,
      },
      () => plainServer.send(mail),
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

/** The same object serves the producer, the workers, and whoever migrates. */
export default defineApp({
  name: 'shop',
  database,
  jobs: [sendConfirmation, sendCompanyConfirmation],
  queues: { mail: { concurrency: 8 } },
  // Short, so that a rescue can be watched; 30 s is the default.
  leaseMs: 2_000,
})
