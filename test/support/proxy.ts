import { EventEmitter } from 'node:events'
import net from 'node:net'
import { type Resolvers, withResolvers } from './eventually.ts'
import { Lane } from './lane.ts'
import {
  isUnasked,
  type Message,
  MessageReader,
  mentions,
  noteAnswer,
  RequestTracker,
  type Round,
} from './wire.ts'

/**
 * A TCP proxy before PostgreSQL that makes the faults a network makes. One proxy stands for one link: give
 * worker, listener and producer one each to break them apart.
 *
 * - `pass`: everything goes through (also ends `freeze` and `refuse`, with nothing lost);
 * - `freeze`: nothing goes through and nobody is told, as when packets are dropped; new connections hang;
 * - `refuse`: new connections are reset, open ones go on.
 */
export interface Proxy {
  readonly port: number
  readonly events: EventEmitter<ProxyEvents>
  readonly counts: Readonly<ProxyCounts>
  /** The target's address by way of the proxy. */
  url(database?: string): string
  pass(): void
  freeze(): void
  refuse(): void
  /** Resets all open connections, on both sides. Returns how many there were. */
  cut(): number
  /** Delays each chunk by `ms` milliseconds, in both directions. */
  delay(ms: number): void
  /** New connections go to `url` from now on; open ones stay where they are. */
  retarget(url: string): void
  /**
   * Resets the connection once `bytes` bytes of the answer to the next statement that mentions `wanted` have
   * gone to the client; at the answer's end if it is shorter.
   */
  cutAnswer(wanted: string | RegExp, bytes: number): Promise<Hit>
  /**
   * Forwards the next statement that mentions `wanted`, waits until the server has done it, and keeps the answer
   * from the client: a lost reply. Then the connection is reset, or (`hang`) stays open and silent.
   */
  dropAnswer(wanted: string | RegExp, afterwards?: 'reset' | 'hang'): Promise<Hit>
  /**
   * Lets the next statement that mentions `wanted` be run and answered by the server, and keeps the answer, and what follows
   * on that connection, until `release`. Other connections go on.
   */
  holdAnswer(wanted: string | RegExp): Promise<HeldAnswer>
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** The round that a fault hit; with `tags` one can see that the server did commit. */
export interface Hit extends Readonly<Round> {
  readonly connection: number
  /** Bytes of the answer that went to the client. */
  readonly bytes: number
}

export interface ProxyCounts {
  /** Connections accepted so far. */
  connections: number
  open: number
  statements: number
  answers: number
  /** Answers cut or kept back: a run with 0 of them proved nothing. */
  faults: number
  resets: number
}

export interface HeldAnswer extends Hit {
  readonly release: () => void
}

export interface ProxyEvents {
  connection: [{ readonly connection: number }]
  statement: [{ readonly connection: number; readonly text: string }]
  answer: [{ readonly connection: number; readonly round: Readonly<Round> }]
  fault: [Hit]
  closed: [{ readonly connection: number }]
}

/** Starts a proxy on 127.0.0.1 before the server of `url`. */
export async function startProxy(url: string): Promise<Proxy> {
  const proxy = new PostgresProxy(url)
  await proxy.listen()
  return proxy
}

/** A fault that waits for its statement. */
interface Trap {
  readonly wanted: string | RegExp
  /** Bytes of the answer to let through before the reset; none for a lost reply. */
  readonly bytes: number | undefined
  readonly afterwards: 'reset' | 'hang' | 'hold'
  readonly sprung: Resolvers<HeldAnswer>
}

class PostgresProxy implements Proxy {
  readonly events = new EventEmitter<ProxyEvents>()
  readonly counts: ProxyCounts = { connections: 0, open: 0, statements: 0, answers: 0, faults: 0, resets: 0 }
  readonly traps: Trap[] = []
  latencyMs = 0
  mode: 'pass' | 'freeze' | 'refuse' = 'pass'
  readonly #server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true })
  readonly #links = new Set<Link>()
  #target: string
  #closed: Promise<void> | undefined

  constructor(target: string) {
    this.#target = target
    this.#server.on('connection', (client) => this.#accept(client))
  }

  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject).listen(0, '127.0.0.1', resolve)
    })
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy is closed')
    return address.port
  }

  url(database?: string): string {
    const url = new URL(this.#target.replace('postgres://postgres@/', 'postgres://postgres@localhost/'))
    const path = database === undefined ? url.pathname : `/${encodeURIComponent(database)}`
    return `postgres://${url.username}@127.0.0.1:${this.port}${path}`
  }

  pass(): void {
    this.#turn('pass')
  }

  freeze(): void {
    this.#turn('freeze')
  }

  refuse(): void {
    this.#turn('refuse')
  }

  cut(): number {
    const links = [...this.#links]
    for (const link of links) link.reset()
    return links.length
  }

  delay(ms: number): void {
    this.latencyMs = ms
  }

  retarget(url: string): void {
    this.#target = url
  }

  cutAnswer(wanted: string | RegExp, bytes: number): Promise<Hit> {
    return this.#set({ wanted, bytes, afterwards: 'reset' })
  }

  dropAnswer(wanted: string | RegExp, afterwards: 'reset' | 'hang' = 'reset'): Promise<Hit> {
    return this.#set({ wanted, bytes: undefined, afterwards })
  }

  holdAnswer(wanted: string | RegExp): Promise<HeldAnswer> {
    return this.#set({ wanted, bytes: undefined, afterwards: 'hold' })
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.cut()
    })
    return this.#closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #set(trap: Omit<Trap, 'sprung'>): Promise<HeldAnswer> {
    const sprung = withResolvers<HeldAnswer>()
    this.traps.push({ ...trap, sprung })
    return sprung.promise
  }

  #turn(mode: PostgresProxy['mode']): void {
    this.mode = mode
    for (const link of this.#links) link.setFrozen(mode === 'freeze')
  }

  #accept(client: net.Socket): void {
    if (this.mode === 'refuse') {
      client.resetAndDestroy()
      return
    }
    this.counts.connections += 1
    this.counts.open += 1
    const link = new Link(this, this.counts.connections, client, connectTo(this.#target))
    this.#links.add(link)
    link.onClosed = () => {
      this.#links.delete(link)
      this.counts.open -= 1
      this.events.emit('closed', { connection: link.id })
    }
    link.setFrozen(this.mode === 'freeze')
    this.events.emit('connection', { connection: link.id })
  }
}

function connectTo(target: string): net.Socket {
  const url = new URL(target.replace('postgres://postgres@/', 'postgres://postgres@localhost/'))
  const dir = url.searchParams.get('host')
  const port = Number(url.searchParams.get('port') ?? (url.port || 5432))
  return dir === null
    ? net.connect({ host: url.hostname, port, allowHalfOpen: true })
    : net.connect({ path: `${dir}/.s.PGSQL.${port}`, allowHalfOpen: true })
}

/** A round under way, with the fault that waits for its answer. */
interface OpenRound {
  readonly round: Round
  readonly trap: Trap | undefined
  /** Bytes of the answer that were forwarded. */
  bytes: number
}

/** One client's connection and ours to the server. */
class Link {
  readonly id: number
  onClosed: () => void = () => {}
  readonly #proxy: PostgresProxy
  readonly #toServer: Lane
  readonly #toClient: Lane
  readonly #requests = new MessageReader({ untyped: true })
  readonly #answers = new MessageReader({ untyped: false })
  readonly #tracker = new RequestTracker()
  /** The first is the one being answered. Logging in is answered like a round without statements. */
  readonly #rounds: OpenRound[] = []
  /** A fault has hit: no answer passes any more, whatever the proxy's mode. */
  #silent = false
  /** What is kept back from the client. */
  #held: Buffer[] | undefined
  #frozen = false
  /** One side was reset, perhaps unknown to the other yet. */
  #broken = false
  #closed = false

  constructor(proxy: PostgresProxy, id: number, client: net.Socket, server: net.Socket) {
    this.#proxy = proxy
    this.id = id
    const latency = () => proxy.latencyMs
    this.#toServer = new Lane(client, server, latency, (chunk) => this.#onRequests(chunk))
    this.#toClient = new Lane(server, client, latency, (chunk) => this.#onAnswers(chunk))
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      // A lost side ends the other the same way; nobody learns of it while frozen (Node sees resets even if paused).
      socket.on('error', () => {
        this.#broken = true
        if (!this.#frozen) this.reset()
      })
      socket.on('close', () => {
        if (client.destroyed && server.destroyed) this.#close()
      })
    }
  }

  setFrozen(frozen: boolean): void {
    if (this.#silent) return
    this.#frozen = frozen
    this.#toServer.setFrozen(frozen)
    this.#toClient.setFrozen(frozen)
    if (this.#broken && !frozen) this.reset()
  }

  reset(): void {
    if (this.#closed) return
    this.#proxy.counts.resets += 1
    this.#toServer.destroy()
    this.#toClient.destroy()
    this.#close()
  }

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    this.onClosed()
  }

  #onRequests(chunk: Buffer): void {
    for (const message of this.#requests.read(chunk)) {
      if (this.#requests.untyped) this.#onOpening(message)
      else this.#onRequest(message)
      this.#toServer.push(message.bytes)
    }
  }

  #onOpening(message: Message): void {
    const opening = RequestTracker.opening(message)
    if (opening === 'ssl') this.#answers.awaitsByte = true
    if (opening !== 'startup') return
    this.#requests.untyped = false
    this.#rounds.push({ round: { texts: [], tags: [] }, trap: undefined, bytes: 0 })
  }

  #onRequest(message: Message): void {
    const round = this.#tracker.take(message)
    if (round === undefined) return
    const { traps, counts, events } = this.#proxy
    const index = traps.findIndex(({ wanted }) => round.texts.some((text) => mentions(text, wanted)))
    const [trap] = index < 0 ? [] : traps.splice(index, 1)
    this.#rounds.push({ round, trap, bytes: 0 })
    for (const text of round.texts) {
      counts.statements += 1
      events.emit('statement', { connection: this.id, text })
    }
  }

  #onAnswers(chunk: Buffer): void {
    for (const message of this.#answers.read(chunk)) {
      if (this.#closed || this.#silent) return
      const current = this.#rounds[0]
      if (message.type === '' || isUnasked(message) || current === undefined) {
        this.#forward(message)
        continue
      }
      const ended = noteAnswer(current.round, message)
      if (ended) {
        this.#rounds.shift()
        this.#proxy.counts.answers += 1
      }
      if (current.trap?.afterwards === 'hold') this.#hold(current, current.trap, message, ended)
      else if (current.trap) this.#spring(current, current.trap, message, ended)
      else this.#forward(message)
      if (ended) this.#proxy.events.emit('answer', { connection: this.id, round: current.round })
    }
  }

  #forward({ bytes }: Message): void {
    if (this.#held === undefined) this.#toClient.push(bytes)
    else this.#held.push(bytes)
  }

  #hold({ round }: OpenRound, trap: Trap, message: Message, ended: boolean): void {
    this.#held ??= []
    this.#held.push(message.bytes)
    if (!ended) return
    this.#proxy.counts.faults += 1
    const hit: Hit = { ...round, connection: this.id, bytes: 0 }
    this.#proxy.events.emit('fault', hit)
    trap.sprung.resolve({ ...hit, release: () => this.#release() })
  }

  #release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const bytes of held) this.#toClient.push(bytes)
  }

  #spring(current: OpenRound, trap: Trap, message: Message, ended: boolean): void {
    if (trap.bytes !== undefined) {
      const part = message.bytes.subarray(0, trap.bytes - current.bytes)
      current.bytes += part.length
      this.#toClient.push(part)
      if (current.bytes < trap.bytes && !ended) return
    } else if (!ended) {
      // Only ReadyForQuery tells that the server is through with it: a commit comes before that, not before the tag.
      return
    }
    const hit: Hit = { ...current.round, connection: this.id, bytes: current.bytes }
    this.#proxy.counts.faults += 1
    if (trap.afterwards === 'hang') this.setFrozen(true)
    else this.#toClient.flush(() => this.reset())
    this.#silent = true
    this.#proxy.events.emit('fault', hit)
    trap.sprung.resolve({ ...hit, release: () => {} })
  }
}
