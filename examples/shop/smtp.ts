import { EventEmitter, once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import { headers } from './mail.ts'

/** A message that the mail server took responsibility for. */
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
}

interface MailServerEvents {
  /** The message is recorded; its sender does not know yet. Listeners run before the reply is written. */
  accepted: [mail: AcceptedMail]
  /** The reply to the sender has been written. */
  replied: [mail: AcceptedMail]
}

export interface MailServer extends AsyncDisposable {
  readonly port: number
  readonly accepted: readonly AcceptedMail[]
  readonly events: EventEmitter<MailServerEvents>
}

export interface MailServerOptions {
  /** How long the server looks at a message before it accepts it, in milliseconds: as spam filters do. */
  readonly inspectMs: () => number
}

/** Starts a real SMTP server on a free port of 127.0.0.1 that accepts every message and records it. */
export async function startMailServer(options: MailServerOptions): Promise<MailServer> {
  const accepted: AcceptedMail[] = []
  const events = new EventEmitter<MailServerEvents>()

  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    closeTimeout: 1_000,
    onData: (stream, session, reply) => {
      const accept = async () => {
        const found = parseHeaders(await readText(stream))
        await sleep(options.inspectMs())
        const mail = toAcceptedMail(found, session.hostNameAppearsAs)
        accepted.push(mail)
        events.emit('accepted', mail)
        reply(null)
        events.emit('replied', mail)
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
    accepted,
    events,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
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

function toAcceptedMail(found: ReadonlyMap<string, string>, worker: string): AcceptedMail {
  const header = (name: string): string => {
    const value = found.get(name)
    if (value === undefined) throw new Error(`the message lacks the header ${name}`)
    return value
  }
  return {
    messageId: header('message-id'),
    orderId: header(headers.orderId),
    fingerprint: header(headers.fingerprint),
    jobId: header(headers.jobId),
    attempt: Number(header(headers.attempt)),
    worker,
    acceptedAt: new Date(),
  }
}
