import type { RawRow, WireValue } from '../driver/driver.ts'

/** What of pg's connection to the server a statement writes to. */
interface PgWire {
  readonly stream: { cork(): void; uncork(): void }
  /** Texts of the prepared statements that the server has, by their names; pg adds one once it was parsed. */
  readonly parsedStatements: Readonly<Record<string, string>>
  parse(message: { readonly text: string; readonly name: string }): void
  bind(message: { readonly statement: string; readonly values: readonly WireValue[] }): void
  describe(message: { readonly type: 'P' }): void
  execute(message?: undefined): void
  sync(): void
  sendCopyFail(message: string): void
}

/**
 * Columns of prepared statements, by connection and name. They cannot change under a name: PostgreSQL refuses to run a
 * statement whose columns are not what they were when it was prepared (0A000).
 */
const columnsOfWire = new WeakMap<PgWire, Map<string, readonly string[]>>()

/**
 * One statement, with parameters and columns as text, in the form in which pg takes queries that speak its protocol
 * themselves: an object with `submit` and a handler for each answer. It asks what the columns are once for each prepared
 * statement and connection, where pg's own query asks each time; that, and what pg does to copy its arguments and to
 * prepare rows, is most of pg's time in a statement with a row (decision 0021). Not on a pipelined connection, which takes
 * no such objects.
 */
class PgStatement {
  /** Read by pg, which remembers by it that the statement was parsed. */
  readonly text: string
  readonly name: string
  /** Called once by this class. Instruments that look at queries put their own in front of it. */
  callback: (error: unknown, rows?: readonly RawRow[]) => void
  readonly #values: readonly WireValue[]
  #columns: readonly string[] | undefined
  #isDescribed = false
  readonly #rows: RawRow[] = []

  constructor(
    statement: { readonly text: string; readonly name: string; readonly values: readonly WireValue[] },
    callback: (error: unknown, rows?: readonly RawRow[]) => void,
  ) {
    this.text = statement.text
    this.name = statement.name
    this.#values = statement.values
    this.callback = callback
  }

  submit(wire: PgWire): null {
    const { name, text } = this
    const isParsed = name !== '' && wire.parsedStatements[name] !== undefined
    if (isParsed) this.#columns = columnsOfWire.get(wire)?.get(name)
    // One write to the socket.
    wire.stream.cork()
    try {
      if (!isParsed) wire.parse({ text, name })
      wire.bind({ statement: name, values: this.#values })
      this.#isDescribed = this.#columns === undefined
      if (this.#isDescribed) wire.describe({ type: 'P' })
      wire.execute()
      wire.sync()
    } finally {
      wire.stream.uncork()
    }
    return null
  }

  handleRowDescription({ fields }: { readonly fields: readonly { readonly name: string }[] }): void {
    this.#columns = fields.map((field) => field.name)
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const row: Record<string, string | null> = {}
    const columns = this.#columns ?? []
    for (let index = 0; index < fields.length; index += 1)
      row[columns[index] as string] = fields[index] as string | null
    this.#rows.push(row)
  }

  handleCommandComplete(_message: unknown, wire: PgWire): void {
    if (this.name === '' || !this.#isDescribed) return
    let known = columnsOfWire.get(wire)
    if (known === undefined) {
      known = new Map()
      columnsOfWire.set(wire, known)
    }
    // A statement without rows was described too, by nothing.
    known.set(this.name, this.#columns ?? [])
  }

  handleReadyForQuery(): void {
    this.callback(null, this.#rows)
  }

  handleError(error: unknown): void {
    this.callback(error)
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}

  handleCopyInResponse(wire: PgWire): void {
    wire.sendCopyFail('a statement of holdfast copies nothing')
    // The one that was sent with the statement was overlooked: what is sent was to be copied.
    wire.sync()
  }

  handleCopyData(): void {}
}

/** Sends one statement on a client of pg that is not pipelined, and gives its rows as text. Throws what pg throws. */
export function querySubmitted(
  client: object,
  text: string,
  values: readonly WireValue[],
  name = '',
): Promise<readonly RawRow[]> {
  return new Promise((resolve, reject) => {
    ;(client as { query(statement: PgStatement): unknown }).query(
      new PgStatement({ text, name, values }, (error, rows) => {
        if (error === null || error === undefined) resolve(rows ?? [])
        else reject(error as Error)
      }),
    )
  })
}
