import { z } from 'zod'
import { defineApp, defineJob, defineProducer, type JobContext, resource } from '../../src/index.ts'

/** As in `enqueue.test-d.ts`: programs that are wrong, and must not compile. Nothing here is run. */

interface Mailer {
  send(to: string): Promise<string>
}

const mailer = resource({
  name: 'mailer',
  provides: ['send:email'],
  create: async (): Promise<Mailer> => ({ send: async (to) => to }),
  dispose: (value) => {
    // @ts-expect-error: what is freed is what was created
    value.close()
  },
})
// @ts-expect-error: a job is enqueued without a resource
void resource({ name: 'x', provides: ['enqueue:job'], create: () => 1 })
// @ts-expect-error: no effect of a known kind
void resource({ name: 'x', provides: ['email'], create: () => 1 })

const base = { input: z.object({ orderId: z.string() }), idempotent: true, handler: () => {} } as const
const notify = defineJob({ ...base, name: 'notify' })
const other = defineJob({ ...base, name: 'other' })

const send = defineJob({
  ...base,
  name: 'send',
  uses: { mailer },
  effects: ['send:email', 'enqueue:notify'],
  handler: async (ctx) => {
    const id: string = await ctx.resources.mailer.send('a')
    // @ts-expect-error: a resource has the type that create gives
    ctx.resources.mailer.close()
    // @ts-expect-error: only what is used is there
    void ctx.resources.printer
    // @ts-expect-error: resources are not for replacing here
    ctx.resources.mailer = { send: async () => '' }
    await ctx.enqueue(notify, { orderId: id })
    // @ts-expect-error: the input is checked
    await ctx.enqueue(notify, { orderId: 1 })
    // @ts-expect-error: a job that is not declared
    await ctx.enqueue(other, { orderId: id })
    logs(ctx)
  },
})
// @ts-expect-error: a kind that is none
void defineJob({ ...base, name: 'x', effects: ['delete:order'] })
// @ts-expect-error: an effect has an object after a colon
void defineJob({ ...base, name: 'x', effects: ['send'] })
// @ts-expect-error: what is used is made by resource()
void defineJob({ ...base, name: 'x', uses: { mailer: { send: () => {} } } })
void defineJob({
  ...base,
  name: 'silent',
  handler: async (ctx) => {
    // @ts-expect-error: what declares nothing enqueues nothing
    await ctx.enqueue(notify, { orderId: '1' })
    // @ts-expect-error: nor has it resources
    void ctx.resources.mailer
  },
})

// Any handler's context fits what takes a plain one.
function logs(ctx: JobContext): void {
  ctx.log.info('here')
}

const confirm = defineProducer({
  name: 'confirm',
  input: z.object({ orderId: z.string(), copies: z.number().default(1) }),
  effects: ['write:order', 'enqueue:send', 'enqueue:notify'],
  async run(tx, { orderId, copies }) {
    const { rows } = await tx.query<{ id: string }>('select 1')
    await tx.enqueue(send, { orderId }, { uniqueKey: orderId })
    await tx.enqueueMany([{ job: notify, input: { orderId } }])
    // @ts-expect-error: not declared
    await tx.enqueue(other, { orderId })
    // @ts-expect-error: not declared in bulk either
    await tx.enqueueMany([{ job: other, input: { orderId } }])
    // @ts-expect-error: the input is checked
    await tx.enqueue(send, { orderId: copies })
    // @ts-expect-error: the transaction is this one
    await tx.enqueue(send, { orderId }, { tx })
    return rows.length
  },
})
// @ts-expect-error: what is outside does not roll back
void defineProducer({ name: 'x', input: z.null(), effects: ['send:email'], run: () => {} })
// @ts-expect-error: effects are declared, if only as none
void defineProducer({ name: 'x', input: z.null(), run: () => {} })

const app = defineApp({
  name: 'shop',
  database: 'pglite:memory:',
  jobs: [notify, other, send],
  producers: [confirm],
  resources: { mailer: { create: () => ({ send: async (to: string) => to }) } },
})
// @ts-expect-error: a producer lacks its input
void app.produce(confirm)
// @ts-expect-error: a member has another type
void app.produce(confirm, { orderId: 1 })
// @ts-expect-error: a job is enqueued, not produced
void app.produce(notify, { orderId: '1' })
void app.produce(confirm, { orderId: '1' }).then((rows) => rows.toFixed())
// @ts-expect-error: the result has the type that run gives
void app.produce(confirm, { orderId: '1' }).then((rows) => rows.slice())
void app.produce(confirm, { orderId: '1' }, { dryRun: true }).then(({ result, enqueues }) => {
  return [result.toFixed(), enqueues[0]?.jobName]
})

declare module '../../src/index.ts' {
  interface ContextData {
    readonly ofTypeTest?: string
  }
}
void app.enqueue(notify, { orderId: '1' }, { context: { ofTypeTest: 'ada', other: [1] } })
// @ts-expect-error: a member of the context has the type that the application declares
void app.enqueue(notify, { orderId: '1' }, { context: { ofTypeTest: 1 } })
// @ts-expect-error: a context has members
void app.enqueue(notify, { orderId: '1' }, { context: 'ada' })
void defineJob({
  ...base,
  name: 'reads',
  authorize: ({ context }) => context.ofTypeTest === 'ada',
  handler: (ctx) => {
    const actor: string | undefined = ctx.context.ofTypeTest
    // @ts-expect-error: nor is it read as another one
    const wrong: number | undefined = ctx.context.ofTypeTest
    void [actor, wrong]
  },
})
// @ts-expect-error: authorize answers with what is listed
void defineJob({ ...base, name: 'x', authorize: () => 'yes' })
