import { createTransport } from 'nodemailer'
import { headers, type Mail } from './mail.ts'

/** What a mail server said when it took a message. */
export interface Receipt {
  readonly response: string
  /** It had the message already, and delivers it once. */
  readonly deduplicated: boolean
}

export interface Mailer extends Disposable {
  /** Resolves once the server has taken the message; `idempotencyKey` goes along for servers that know such keys. */
  send(mail: Mail, options?: { readonly idempotencyKey?: string }): Promise<Receipt>
}

export interface MailerOptions {
  readonly port: number
  /** What the client calls itself in EHLO. */
  readonly name: string
}

/** Connects with the first mail, so a process that only enqueues never does. */
export function createMailer({ port, name }: MailerOptions): Mailer {
  const pool = {
    host: '127.0.0.1',
    port,
    name,
    ignoreTLS: true,
    pool: true as const,
    maxConnections: 8,
    maxMessages: Number.POSITIVE_INFINITY,
    // The pool would send again by itself what was under way when a connection broke: past the ledger, and in silence.
    maxRequeues: 0,
  }
  const transport = createTransport(pool)
  return {
    send: async (mail, { idempotencyKey } = {}) => {
      const key = idempotencyKey === undefined ? {} : { [headers.idempotencyKey]: idempotencyKey }
      const { response } = await transport.sendMail({ ...mail, headers: { ...mail.headers, ...key } })
      return { response, deduplicated: response.includes('duplicate') }
    },
    [Symbol.dispose]: () => transport.close(),
  }
}

/** The message as the plain server has it; `undefined` if it never came. Waits for what is still being inspected. */
export async function findMail(
  messageId: string,
  { inquiryPort, signal }: { readonly inquiryPort: number; readonly signal: AbortSignal },
): Promise<Receipt | undefined> {
  const url = `http://127.0.0.1:${inquiryPort}/messages/${encodeURIComponent(messageId)}`
  const answer = await fetch(url, { signal })
  if (answer.status === 404) return undefined
  if (!answer.ok) throw new Error(`the mail server answered ${answer.status} to a question`)
  return { response: `found: ${await answer.text()}`, deduplicated: false }
}

const afterConnecting = new Set(['MAIL FROM', 'RCPT TO', 'DATA'])

/**
 * True for an error after which the server certainly does not have the message: it was never reached, or it refused.
 * Not by the command `CONN`, which nodemailer also names when a connection breaks in the middle of a message.
 */
export function isNotSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('syscall' in error && error.syscall === 'connect') return true
  const code = 'responseCode' in error ? Number(error.responseCode) : 0
  return code >= 400 && 'command' in error && afterConnecting.has(String(error.command))
}
