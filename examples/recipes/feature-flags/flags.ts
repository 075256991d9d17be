import type { App, KeyEntry } from 'holdfast'

export interface Flag {
  readonly on: boolean
  /** Of a hundred customers, so many see it. */
  readonly percent: number
}

const BUCKET = 'flags/shop'

export async function readFlag(app: App, name: string, asOf?: Date): Promise<Flag | undefined> {
  return (await app.keys.get(`${BUCKET}/${name}`, { asOf }))?.json<Flag>()
}

/** Changes a flag from what it is to what `change` makes of that. If somebody came between, from what they made of it. */
export async function updateFlag(app: App, name: string, change: (flag: Flag) => Flag): Promise<Flag> {
  let before: KeyEntry | undefined = await app.keys.get(`${BUCKET}/${name}`)
  let ifRevision = before?.revision ?? -1n
  for (;;) {
    const flag = change(before?.json<Flag>() ?? { on: false, percent: 0 })
    const answer = await app.keys.set(`${BUCKET}/${name}`, JSON.stringify(flag), { ifRevision })
    if (answer.ok) return flag
    // A refusal says what is there now.
    before = answer.current
    ifRevision = answer.revision
  }
}

/** What not to do: a change that came between is written over. */
export async function updateBlindly(app: App, name: string, change: (flag: Flag) => Flag): Promise<Flag> {
  const flag = change((await readFlag(app, name)) ?? { on: false, percent: 0 })
  await app.keys.set(`${BUCKET}/${name}`, JSON.stringify(flag))
  return flag
}

/** All flags in memory, kept up to date: asking costs nothing. */
export class Flags implements AsyncDisposable {
  readonly #app: App
  readonly #known = new Map<string, Flag>()
  readonly #end = new AbortController()
  readonly #onChange: (name: string, flag: Flag | undefined) => void
  #following: Promise<void> | undefined

  constructor(app: App, onChange: (name: string, flag: Flag | undefined) => void = () => {}) {
    this.#app = app
    this.#onChange = onChange
  }

  get(name: string): Flag | undefined {
    return this.#known.get(name)
  }

  /** Watches first and reads then: what changes in between is told. */
  async start(): Promise<void> {
    const watch = this.#app.keys.watch({ bucket: BUCKET }, { signal: this.#end.signal })
    await watch.started
    await this.#readAll()
    this.#following = (async () => {
      for await (const change of watch) {
        if (change.kind === 'resync') await this.#readAll()
        else this.#take(change.key, 'entry' in change ? change.entry : undefined)
      }
    })()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#following
  }

  async #readAll(): Promise<void> {
    this.#known.clear()
    for await (const entry of this.#app.keys.all({ bucket: BUCKET }))
      this.#known.set(entry.key.slice(BUCKET.length + 1), entry.json<Flag>())
  }

  #take(key: string, entry: KeyEntry | undefined): void {
    const name = key.slice(BUCKET.length + 1)
    const flag = entry?.json<Flag>()
    if (flag === undefined) this.#known.delete(name)
    else this.#known.set(name, flag)
    this.#onChange(name, flag)
  }
}

/** When a flag was last changed, by PostgreSQL's clock: what to ask for "as of". */
export async function changedAt(app: App, name: string): Promise<Date | undefined> {
  return (await app.keys.get(`${BUCKET}/${name}`))?.modifiedAt
}
