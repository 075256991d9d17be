import type { SendMailOptions } from 'nodemailer'
import { fingerprint, type Order } from './orders.ts'

/** A message whose headers can be added to. */
export type Mail = Omit<SendMailOptions, 'headers'> & { readonly headers: Readonly<Record<string, string>> }

/** Which run of which job sends the mail; goes into headers, so that the mail server can tell from outside. */
export interface JobRun {
  readonly jobId: string
  readonly attempt: number
}

export const headers = {
  orderId: 'x-order-id',
  fingerprint: 'x-order-fingerprint',
  jobId: 'x-job-id',
  attempt: 'x-job-attempt',
  idempotencyKey: 'x-idempotency-key',
} as const

/** The address that replies and bounces go to names the order; so does what a mail server is told before the mail itself. */
const sender = { prefix: 'orders+', domain: '@shop.example' } as const

/** The order that a sender's address names. */
export function orderOfSender(address: string): string | undefined {
  const { prefix, domain } = sender
  return address.startsWith(prefix) ? address.slice(prefix.length, -domain.length) : undefined
}

/** The same for every attempt: what a mail server can be asked for. */
export function messageIdOf(orderId: string): string {
  return `<confirmation.${orderId}@shop.example>`
}

export function confirmationMail(order: Order, run: JobRun): Mail {
  return {
    messageId: messageIdOf(order.id),
    from: { name: 'The Shop', address: `${sender.prefix}${order.id}${sender.domain}` },
    to: { name: order.name, address: order.email },
    subject: `Your order ${order.id}: ${order.quantity} × ${order.article}`,
    text: confirmationText(order),
    headers: {
      [headers.orderId]: order.id,
      [headers.fingerprint]: fingerprint(order),
      [headers.jobId]: run.jobId,
      [headers.attempt]: String(run.attempt),
    },
  }
}

function confirmationText(order: Order): string {
  const address = [order.name, order.company, order.street, order.city, order.country]
  return [
    `Dear ${order.name},`,
    `we confirm your order ${order.id}: ${order.quantity} × ${order.article}.`,
    `It goes to:\n${address.filter((line) => line !== '').join('\n')}`,
    ...(order.note === '' ? [] : [`Your note:\n${order.note}`]),
    'The Shop',
  ].join('\n\n')
}
