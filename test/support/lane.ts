import type net from 'node:net'

/** One direction of a link: what comes from `source` goes to `target`, late or not at all. */
export class Lane {
  readonly #source: net.Socket
  readonly #target: net.Socket
  readonly #latencyMs: () => number
  readonly #queue: { readonly at: number; readonly send: () => void }[] = []
  #timer: NodeJS.Timeout | undefined
  #frozen = false

  constructor(
    source: net.Socket,
    target: net.Socket,
    latencyMs: () => number,
    onData: (chunk: Buffer) => void,
  ) {
    this.#source = source
    this.#target = target
    this.#latencyMs = latencyMs
    source.on('data', onData)
    source.on('end', () => this.#enqueue(() => target.end()))
    target.on('drain', () => this.#flow())
  }

  push(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#enqueue(() => {
      if (!this.#target.write(bytes)) this.#source.pause()
    })
  }

  /** Calls `then` once everything that was pushed so far is on its way. */
  flush(then: () => void): void {
    this.#enqueue(() => this.#target.write('', then))
  }

  setFrozen(frozen: boolean): void {
    this.#frozen = frozen
    this.#flow()
    this.#pump()
  }

  destroy(): void {
    clearTimeout(this.#timer)
    this.#queue.length = 0
    // Node 20 leaks the handle of a socket that is reset while it still says its goodbye, and then spins at exit.
    if (this.#source.connecting || this.#source.writableEnded) this.#source.destroy()
    else this.#source.resetAndDestroy()
  }

  #enqueue(send: () => void): void {
    this.#queue.push({ at: performance.now() + this.#latencyMs(), send })
    this.#pump()
  }

  /** Sends what is due, in order; nothing while frozen. */
  #pump(): void {
    clearTimeout(this.#timer)
    while (!this.#frozen) {
      const next = this.#queue[0]
      if (next === undefined) return
      const waitMs = next.at - performance.now()
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#pump(), Math.ceil(waitMs))
        return
      }
      this.#queue.shift()
      next.send()
    }
  }

  /** A frozen lane does not even read: the sender's window fills, and its closing goes unseen. */
  #flow(): void {
    if (this.#frozen) this.#source.pause()
    else this.#source.resume()
  }
}
