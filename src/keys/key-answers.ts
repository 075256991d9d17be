import type { KeyEntry } from './key-entry.ts'

/** What came of a set. A refusal is an answer: use its `revision`, or what is there now, for the next try. */
export type SetAnswer =
  | {
      readonly ok: true
      readonly revision: bigint
      readonly expiresAt: Date | null
      readonly modifiedAt: Date
    }
  | {
      readonly ok: false
      /** The key's newest revision, deleted and expired ones counted; -1: never written. */
      readonly revision: bigint
      /** What the key holds; `undefined` if it is absent. */
      readonly current: KeyEntry | undefined
    }

/** What came of a delete. Not `ok`: the key was absent, or a condition did not hold; nothing was changed. */
export interface DeleteAnswer {
  readonly ok: boolean
  /** Of the deletion, which is a revision of its own; else the key's newest one, -1 if it was never written. */
  readonly revision: bigint
}

/** What came of `extend` and `persist`. Not `ok`: the key was absent. */
export interface ExtendAnswer {
  readonly ok: boolean
  /** The key's newest revision, which this does not change; -1 if it was never written. */
  readonly revision: bigint
  readonly expiresAt: Date | null
}

/** What a key holds after `increment`. */
export interface IncrementAnswer {
  readonly value: bigint
  readonly revision: bigint
  readonly expiresAt: Date | null
}

/** One revision that the history has of a key. */
export interface KeyRevision {
  readonly revision: bigint
  /** `undefined`: the key was deleted by this revision. */
  readonly entry: KeyEntry | undefined
  readonly modifiedAt: Date
}
