import { z } from 'zod'
import { defineApp, defineJob, type JobInput, type JobResult, type Transaction } from '../../src/index.ts'

/**
 * Programs that are wrong, and must not compile: `tsc` reports a line that is expected to fail and does not.
 * Nothing here is run.
 */

const send = defineJob({
  name: 'send',
  input: z.object({ orderId: z.string(), copies: z.number().default(1) }),
  result: z.object({ messageId: z.string() }),
  idempotent: true,
  handler: (ctx, input) => {
    const copies: number = input.copies
    // @ts-expect-error: the facts of a job are not for writing
    ctx.job.attempt = 2
    // @ts-expect-error: nor is the context
    ctx.job = { ...ctx.job }
    // @ts-expect-error: a token is a bigint, which a number would round
    const token: number = ctx.job.fencingToken
    // @ts-expect-error: an id is text
    const id: number = ctx.job.id
    // @ts-expect-error: a wait has a unit
    if (copies > 5) ctx.snooze(1000)
    // @ts-expect-error: a discard has a reason
    if (copies > 6) ctx.discard()
    // @ts-expect-error: what a handler enqueues is committed at once, not in a transaction
    void ctx.enqueue(send, { orderId: '1' }, { tx: {} })
    // @ts-expect-error: the schema's own output, not whatever
    void input.orderid
    return { messageId: `${token} ${id}` }
  },
})

// @ts-expect-error: idempotent is missing
void defineJob({ name: 'x', input: z.null(), handler: () => {} })
// @ts-expect-error: idempotent is not true
void defineJob({ name: 'x', input: z.null(), idempotent: false, handler: () => {} })
// @ts-expect-error: a boolean that may be false is no promise
void defineJob({ name: 'x', input: z.null(), idempotent: Math.random() > 2, handler: () => {} })
// @ts-expect-error: input is missing
void defineJob({ name: 'x', idempotent: true, handler: () => {} })
// @ts-expect-error: the input is no Standard Schema
void defineJob({ name: 'x', input: { orderId: 'string' }, idempotent: true, handler: () => {} })
// @ts-expect-error: a job without a handler
void defineJob({ name: 'x', input: z.null(), idempotent: true })
void defineJob({
  name: 'x',
  input: z.null(),
  result: z.object({ a: z.string() }),
  idempotent: true,
  // @ts-expect-error: the result does not fit its schema
  handler: () => ({ a: 1 }),
})
// @ts-expect-error: a policy has a type
void defineJob({ name: 'x', input: z.null(), idempotent: true, retry: { baseMs: 5 }, handler: () => {} })
// @ts-expect-error: a fixed policy says how long
void defineJob({ name: 'x', input: z.null(), idempotent: true, retry: { type: 'fixed' }, handler: () => {} })
// @ts-expect-error: durations carry their unit
void defineJob({ name: 'x', input: z.null(), idempotent: true, timeout: 5, handler: () => {} })
// @ts-expect-error: a definition is frozen
send.maxAttempts = 5

const app = defineApp({ name: 'shop', database: 'pglite:memory:', jobs: [send] })
// @ts-expect-error: an application has a name
void defineApp({ database: 'pglite:memory:', jobs: [send] })
// @ts-expect-error: jobs are what defineJob gives
void defineApp({ name: 'shop', database: 'pglite:memory:', jobs: [{ name: 'send' }] })

// @ts-expect-error: the input lacks a member
void app.enqueue(send, {})
// @ts-expect-error: a member has another type
void app.enqueue(send, { orderId: 5 })
// @ts-expect-error: the input is missing
void app.enqueue(send)
// @ts-expect-error: a job by its name alone has no input to check
void app.enqueue('send', { orderId: '1' })
// @ts-expect-error: a number is not an instant
void app.enqueue(send, { orderId: '1' }, { runAt: Date.now() })
// @ts-expect-error: nor is a text
void app.enqueue(send, { orderId: '1' }, { runAt: '2026-01-01' })
// @ts-expect-error: a key is text
void app.enqueue(send, { orderId: '1' }, { uniqueKey: 5 })
// @ts-expect-error: durations carry their unit
void app.enqueue(send, { orderId: '1' }, { delay: 5 })
// @ts-expect-error: a transaction is passed once for all
void app.enqueueMany([{ job: send, input: { orderId: '1' }, tx: {} }])
// @ts-expect-error: ids are text or bigint, never a number that was rounded
void app.job(5)

const inTransaction = async (tx: Transaction): Promise<void> => {
  // @ts-expect-error: a transaction has its own tx
  await tx.enqueue(send, { orderId: '1' }, { tx })
  // @ts-expect-error: the input is checked here too
  await tx.enqueue(send, { orderId: 1 })
}
void inTransaction

// What is right compiles: defaults of a schema may be left out by the producer, and are there for the handler.
void app.enqueue(send, { orderId: '1' }, { uniqueKey: null, runAt: new Date(), priority: 1 })
void app.enqueue(send, { orderId: '1', copies: 2 })
const input: JobInput<typeof send> = { orderId: '1' }
const result: JobResult<typeof send> = { messageId: '1' }
// @ts-expect-error: the result has a type as well
const wrong: JobResult<typeof send> = { messageId: 1 }
void [input, result, wrong]

void app.enqueue(send, input).then((answer) => {
  const status: 'created' | 'existing' = answer.status
  // @ts-expect-error: an id is text
  const id: number = answer.id
  // @ts-expect-error: answers are not for writing
  answer.status = 'created'
  return [status, id]
})
