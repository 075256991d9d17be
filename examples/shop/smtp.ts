import { EventEmitter, once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import { headers, orderOfSender } from './mail.ts'

/** A message that a mail server took responsibility for. */
export interface AcceptedMail {
  readonly messageId: string
  readonly orderId: string
  /** Fingerprint of the order as the handler read it. */
  readonly fingerprint: string
  readonly jobId: string
  readonly attempt: number
  /** What the client called itself in EHLO. */
  readonly worker: string
  readonly acceptedAt: Date
  /** The server had it already and delivers it once. */
  readonly deduplicated: boolean
}

/** What a mail server knows of a message before any of it was sent. */
export interface Announcement {
  readonly orderId: string
  readonly worker: string
}

interface MailServerEvents {
  /** A client says whose mail it is about to send. Listeners run before the reply is written. */
  announced: [mail: Announcement]
  /** The message is recorded; its sender does not know yet. Listeners run before the reply is written. */
  accepted: [mail: AcceptedMail]
}

/** What a mail server sees of a message on its way. */
export type Moment = keyof MailServerEvents

export interface MailServer extends AsyncDisposable {
  readonly port: number
  readonly accepted: readonly AcceptedMail[]
  readonly events: EventEmitter<MailServerEvents>
  /** The first message with this Message-ID. Waits while one is being inspected, so that the answer is final for it. */
  find(messageId: string): Promise<AcceptedMail | undefined>
}

export interface MailServerOptions {
  /** How long the server looks at a message before it accepts it, in milliseconds: as spam filters do. */
  readonly inspectMs: () => number
  /** True to deliver one message per idempotency key, and to say of another that it is a duplicate. */
  readonly deduplicates: boolean
}

/** Starts a real SMTP server on a free port of 127.0.0.1 that accepts every message and records it. */
export async function startMailServer(options: MailServerOptions): Promise<MailServer> {
  const inbox = new Inbox(options)
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    closeTimeout: 1_000,
    onMailFrom: ({ address }, session, reply) => {
      const orderId = orderOfSender(address)
      if (orderId) inbox.events.emit('announced', { orderId, worker: session.hostNameAppearsAs })
      reply(null)
    },
    onData: (stream, session, reply) => {
      const accept = async () => {
        const found = parseHeaders(await readText(stream))
        const mail = await inbox.take(found, session.hostNameAppearsAs)
        // The type leaves out the text of a reply that accepts.
        const say = reply as (error: Error | null, text: string) => void
        say(null, mail.deduplicated ? 'duplicate of an accepted message' : 'accepted')
      }
      accept().catch(reply)
    },
  })
  // A client that was killed resets its connections: here that is daily business.
  server.on('error', () => undefined)

  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')

  return {
    port: (server.server.address() as AddressInfo).port,
    accepted: inbox.accepted,
    events: inbox.events,
    find: (messageId) => inbox.find(messageId),
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

class Inbox {
  readonly accepted: AcceptedMail[] = []
  readonly events = new EventEmitter<MailServerEvents>()
  readonly #options: MailServerOptions
  readonly #keys = new Set<string>()
  readonly #firsts = new Map<string, AcceptedMail>()
  readonly #inspections = new Map<string, Promise<unknown>>()

  constructor(options: MailServerOptions) {
    this.#options = options
  }

  async take(found: ReadonlyMap<string, string>, worker: string): Promise<AcceptedMail> {
    const messageId = headerOf(found, 'message-id')
    const inspection = sleep(this.#options.inspectMs())
    this.#inspections.set(messageId, inspection)
    await inspection
    const key = this.#options.deduplicates ? headerOf(found, headers.idempotencyKey) : undefined
    const mail = toAcceptedMail(found, worker, key !== undefined && this.#keys.has(key))
    if (key !== undefined) this.#keys.add(key)
    if (!this.#firsts.has(messageId)) this.#firsts.set(messageId, mail)
    if (this.#inspections.get(messageId) === inspection) this.#inspections.delete(messageId)
    this.accepted.push(mail)
    this.events.emit('accepted', mail)
    return mail
  }

  async find(messageId: string): Promise<AcceptedMail | undefined> {
    // Its own continuation comes after that of `take`, which asked to be told first.
    await this.#inspections.get(messageId)
    return this.#firsts.get(messageId)
  }
}

async function readText(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

/** The headers of a message by lower-case name, folded lines joined. */
function parseHeaders(message: string): Map<string, string> {
  const head = message.slice(0, message.search(/\r?\n\r?\n/u)).replaceAll(/\r?\n[ \t]+/gu, ' ')
  const pairs = head.split(/\r?\n/u).map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  return new Map(pairs)
}

function headerOf(found: ReadonlyMap<string, string>, name: string): string {
  const value = found.get(name)
  if (value === undefined) throw new Error(`the message lacks the header ${name}`)
  return value
}

function toAcceptedMail(
  found: ReadonlyMap<string, string>,
  worker: string,
  deduplicated: boolean,
): AcceptedMail {
  return {
    messageId: headerOf(found, 'message-id'),
    orderId: headerOf(found, headers.orderId),
    fingerprint: headerOf(found, headers.fingerprint),
    jobId: headerOf(found, headers.jobId),
    attempt: Number(headerOf(found, headers.attempt)),
    worker,
    acceptedAt: new Date(),
    deduplicated,
  }
}
