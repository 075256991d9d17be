import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type AcceptedMail, type MailServer, startMailServer } from './smtp.ts'

/** What the plain server was asked, and what it answered. */
export interface Inquiry {
  readonly messageId: string
  readonly hasArrived: boolean
}

/** The outside world: two mail servers, which know nothing of jobs. */
export interface MailServers extends AsyncDisposable {
  /** Delivers one message per idempotency key. */
  readonly provider: MailServer
  /** Delivers whatever comes. */
  readonly plain: MailServer
  /** HTTP port at which {@link plain} can be asked for a Message-ID. */
  readonly inquiryPort: number
  readonly inquiries: readonly Inquiry[]
  /** All that either server accepted so far, duplicates too. */
  accepted(): readonly AcceptedMail[]
  acceptedCount(): number
}

export type MailServerName = 'provider' | 'plain'

export async function startMailServers(inspectMs: () => number): Promise<MailServers> {
  const provider = await startMailServer({ inspectMs, deduplicates: true })
  const plain = await startMailServer({ inspectMs, deduplicates: false })
  const desk = await startInquiries(plain)
  return {
    provider,
    plain,
    inquiryPort: desk.port,
    inquiries: desk.inquiries,
    accepted: () => [...provider.accepted, ...plain.accepted],
    acceptedCount: () => provider.accepted.length + plain.accepted.length,
    async [Symbol.asyncDispose]() {
      await Promise.all([
        provider[Symbol.asyncDispose](),
        plain[Symbol.asyncDispose](),
        desk[Symbol.asyncDispose](),
      ])
    },
  }
}

interface InquiryDesk extends AsyncDisposable {
  readonly port: number
  readonly inquiries: readonly Inquiry[]
}

/** `GET /messages/<Message-ID>`: 200 if the server has such a message, 404 if none came. */
async function startInquiries(mailServer: MailServer): Promise<InquiryDesk> {
  const inquiries: Inquiry[] = []
  const server = createServer((request, response) => {
    const messageId = decodeURIComponent((request.url ?? '').replace('/messages/', ''))
    void mailServer.find(messageId).then((mail) => {
      inquiries.push({ messageId, hasArrived: mail !== undefined })
      response.writeHead(mail ? 200 : 404, { 'content-type': 'text/plain' })
      response.end(mail ? `accepted at ${mail.acceptedAt.toISOString()}` : '')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    inquiries,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
