import type { SendMailOptions } from 'nodemailer'
import { fingerprint, type Order } from './orders.ts'

/** Which run of which job sends the mail; goes into headers, so that the mail server can tell from outside. */
export interface Sender {
  readonly jobId: string
  readonly attempt: number
}

export const headers = {
  orderId: 'x-order-id',
  fingerprint: 'x-order-fingerprint',
  jobId: 'x-job-id',
  attempt: 'x-job-attempt',
} as const

/** The same order always has the same Message-ID: a mail program that receives it twice can show it once. */
export function confirmationMail(order: Order, sender: Sender): SendMailOptions {
  return {
    messageId: `<confirmation.${order.id}@shop.example>`,
    from: { name: 'The Shop', address: 'orders@shop.example' },
    to: { name: order.name, address: order.email },
    subject: `Your order ${order.id}: ${order.quantity} × ${order.article}`,
    text: confirmationText(order),
    headers: {
      [headers.orderId]: order.id,
      [headers.fingerprint]: fingerprint(order),
      [headers.jobId]: sender.jobId,
      [headers.attempt]: String(sender.attempt),
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
