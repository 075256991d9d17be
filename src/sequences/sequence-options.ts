/** Where a call about sequences goes. */
export interface SequenceOptions {
  /** Whose sequence it is: the same name of another tenant is another sequence. Default: nobody's. */
  readonly tenant?: string | undefined
  /** Your open transaction, as for `app.enqueue`: what the call does commits and rolls back with it. Default: its own. */
  readonly tx?: unknown
}

/** How a sequence is created. What it is then stays. */
export interface CreateSequenceOptions extends SequenceOptions {
  /** The value before the first: a 64-bit number, as a bigint or a number that is exact. Default: 0. */
  readonly initial?: number | bigint | undefined
  /** From one value to the next: 1 to 2^63-1. Default: 1. The first value is `initial + increment`. */
  readonly increment?: number | bigint | undefined
  /** No value is larger: `initial` to 2^63-1. Default: 2^63-1. */
  readonly max?: number | bigint | undefined
  /**
   * What to do if there is a sequence of the name. `'throw'`: {@link SequenceExistsError}. `'keep'`: nothing if it was
   * created with the same settings, however far it has come, so that every start of a program may create it. Default: `'throw'`.
   */
  readonly ifExists?: 'throw' | 'keep' | undefined
}

/** How values are drawn. */
export interface DrawOptions extends SequenceOptions {
  /**
   * Makes the call safe to repeat: a repetition with the same count is given the very same values. Remembered for ten
   * minutes, and for the sequence's last 256 requests with a key; after that it draws anew. Outer blanks do not count,
   * a blank one is none. At most 1,024 bytes, one line; of this sequence only. Default: none.
   */
  readonly idempotencyKey?: string | null | undefined
}

/** Which sequences to list. */
export interface ListSequencesOptions extends SequenceOptions {
  /** Only names that begin so, byte for byte. Default: all. */
  readonly prefix?: string | undefined
  /** Rows of a page: 1 to 1,000. Default: 50. */
  readonly limit?: number | undefined
  /** The `next` of the page before. Default: the first page. */
  readonly after?: string | undefined
}

/** A sequence as it is at one moment. */
export interface SequenceInfo {
  readonly name: string
  /** The value drawn last; before the first, `initial`. */
  readonly current: bigint
  readonly initial: bigint
  readonly increment: bigint
  /** `undefined`: 2^63-1. */
  readonly max: bigint | undefined
  /** How many values can still be drawn. */
  readonly available: bigint
  /** How often something was drawn. */
  readonly revision: bigint
  readonly createdAt: Date
}

/** A page of sequences. */
export interface SequencePage {
  readonly sequences: readonly SequenceInfo[]
  /** Give it as `after` for the next page; `undefined`: this is the last. */
  readonly next: string | undefined
}

/** `count` values from `first` to `last`, each `increment` after the one before; nobody else is given one of them. */
export interface ReservedRange {
  readonly first: bigint
  readonly last: bigint
  readonly increment: bigint
  readonly count: bigint
}
