/**
 * Just enough of PostgreSQL's protocol, version 3, to know which answer belongs to which statement.
 *
 * A client's requests come in rounds: one Query message, or any number of extended messages up to Sync. The
 * server ends each round, in order, with exactly one ReadyForQuery; messages of its own accord (notifications,
 * notices, parameter changes) may come at any time and belong to no round.
 */

const STARTUP_CODES = { ssl: 80_877_103, gss: 80_877_104, cancel: 80_877_102 } as const

export interface Message {
  /** One letter, or empty for the messages that open a connection and the server's answer to SSLRequest. */
  readonly type: string
  /** The message as it travels, type and length included. */
  readonly bytes: Buffer
  readonly body: Buffer
}

/** What the client asked for in one round. */
export interface Round {
  /** Texts of the statements that were executed, in order. */
  readonly texts: string[]
  /** Command tags that came back, such as `INSERT 0 1` or `COMMIT`. */
  readonly tags: string[]
  /** SQLSTATE of the error that came back. */
  sqlState?: string
}

/** Cuts a stream of bytes into messages; an incomplete one waits for the rest. */
export class MessageReader {
  #rest: Buffer = Buffer.alloc(0)
  /** Messages without a type byte are expected: the client's first ones. */
  untyped: boolean
  /** A single byte is expected: the server's answer to SSLRequest or GSSENCRequest. */
  awaitsByte = false

  constructor(options: { readonly untyped: boolean }) {
    this.untyped = options.untyped
  }

  /** One message at a time, since it may change what comes next. */
  *read(chunk: Buffer): Generator<Message> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    for (;;) {
      const message = this.#next()
      if (message === undefined) return
      this.#rest = this.#rest.subarray(message.bytes.length)
      yield message
    }
  }

  #next(): Message | undefined {
    const rest = this.#rest
    if (this.awaitsByte) {
      if (rest.length === 0) return undefined
      this.awaitsByte = false
      return { type: '', bytes: rest.subarray(0, 1), body: rest.subarray(0, 0) }
    }
    const start = this.untyped ? 0 : 1
    if (rest.length < start + 4) return undefined
    const end = start + rest.readInt32BE(start)
    if (rest.length < end) return undefined
    return {
      type: rest.toString('latin1', 0, start),
      bytes: rest.subarray(0, end),
      body: rest.subarray(start + 4, end),
    }
  }
}

/** Follows the client's side: which statements each round executes. */
export class RequestTracker {
  readonly #statements = new Map<string, string>()
  readonly #portals = new Map<string, string>()
  #texts: string[] = []

  /** Kind of an opening message; the connection speaks typed messages after `startup`. */
  static opening(message: Message): 'ssl' | 'cancel' | 'startup' {
    const code = message.body.readInt32BE(0)
    if (code === STARTUP_CODES.ssl || code === STARTUP_CODES.gss) return 'ssl'
    return code === STARTUP_CODES.cancel ? 'cancel' : 'startup'
  }

  /** Takes one message; gives the round that it completes. */
  take(message: Message): Round | undefined {
    const [first = '', second = ''] = strings(message.body)
    switch (message.type) {
      case 'P':
        this.#statements.set(first, second)
        return undefined
      case 'B':
        this.#portals.set(first, this.#statements.get(second) ?? '')
        return undefined
      case 'E':
        this.#texts.push(this.#portals.get(first) ?? '')
        return undefined
      case 'Q':
        return { texts: [first], tags: [] }
      case 'S': {
        const round = { texts: this.#texts, tags: [] }
        this.#texts = []
        return round
      }
      default:
        return undefined
    }
  }
}

/** True for what the server sends of its own accord: it belongs to no round. */
export function isUnasked(message: Message): boolean {
  return message.type === 'A' || message.type === 'N' || message.type === 'S'
}

/** Notes in `round` what an answer says; true if the answer ends the round. */
export function noteAnswer(round: Round, message: Message): boolean {
  if (message.type === 'C') round.tags.push(strings(message.body)[0] ?? '')
  if (message.type === 'E') round.sqlState = sqlStateOf(message.body)
  return message.type === 'Z'
}

function sqlStateOf(body: Buffer): string {
  const fields = body.toString('utf8').split('\0')
  return fields.find((field) => field.startsWith('C'))?.slice(1) ?? ''
}

/** The zero-terminated strings a body starts with, two at most. */
function strings(body: Buffer): readonly string[] {
  const first = body.indexOf(0)
  if (first < 0) return []
  const second = body.indexOf(0, first + 1)
  const texts = [body.toString('utf8', 0, first)]
  if (second >= 0) texts.push(body.toString('utf8', first + 1, second))
  return texts
}

/**
 * True if `text` has `wanted` in it, whatever the case; words match whole, so `COMMIT` is not found in
 * `synchronous_commit`.
 */
export function mentions(text: string, wanted: string | RegExp): boolean {
  if (wanted instanceof RegExp) return wanted.test(text)
  const quoted = wanted.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const start = /^\w/.test(wanted) ? '\\b' : ''
  const end = /\w$/.test(wanted) ? '\\b' : ''
  return new RegExp(start + quoted + end, 'i').test(text)
}
