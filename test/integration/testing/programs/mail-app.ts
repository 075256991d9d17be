import { z } from 'zod'
import { defineApp, defineJob, resource } from '../../../../src/index.ts'

/** Sends a mail by the provider of the test, which takes it once for each key, if one is given. */
async function send(about: string, key = ''): Promise<void> {
  const url = process.env['TEST_PROVIDER'] ?? ''
  const answer = await fetch(url, { method: 'POST', body: about, headers: { 'idempotency-key': key } })
  if (!answer.ok) throw new Error(`the provider answered ${answer.status}`)
}

const mailer = resource({ name: 'mailer', provides: ['send:email'], create: () => ({ send }) })

const MARK = `update orders set status = 'sent' where id = $1`
const input = z.object({ orderId: z.string() })

/** Sends, then says so: a death in between sends again. */
export const naive = defineJob({
  name: 'naive',
  input,
  idempotent: true,
  handler: async (ctx, { orderId }) => {
    await send(orderId)
    await ctx.transaction(async (tx) => await tx.query(MARK, [orderId]))
  },
})

export const mended = defineJob({
  name: 'mended',
  input,
  idempotent: true,
  uses: { mailer },
  effects: ['send:email'],
  handler: async (ctx, { orderId }) => {
    await ctx.effect(
      'send:email',
      { key: orderId, ifUncertain: 'repeat' },
      async ({ idempotencyKey }) => await ctx.resources.mailer.send(orderId, idempotencyKey),
    )
    await ctx.commit(async (tx) => await tx.query(MARK, [orderId]))
  },
})

export default defineApp({
  name: 'shop',
  database: process.env['DATABASE_URL'] ?? 'pglite:memory:',
  jobs: [naive, mended],
})
