import type { Durability } from '../../base/durability.ts'
import type { Sequences } from '../../sequences/sequences.ts'

/** A lock that the shell has, as `app.locks.acquire` gives it. */
export interface ShellLock {
  readonly held: boolean
  readonly fencingToken: bigint | undefined
  extend(ms: number): Promise<boolean>
  release(): Promise<boolean>
}

/** A lock that somebody has. */
export interface ShellLockInfo {
  readonly resource: string
  readonly owner: string
  readonly fencingToken: bigint
  readonly expiresAt: Date
}

export interface ShellLocks {
  acquire(
    resource: string,
    options: {
      readonly leaseMs: number | undefined
      readonly owner: string
      readonly durability: Durability
      readonly tenant: string | undefined
    },
  ): Promise<ShellLock>
  info(
    resource: string,
    options: { readonly durability: Durability; readonly tenant: string | undefined },
  ): Promise<ShellLockInfo | undefined>
  list(options: {
    readonly durability: Durability
    readonly tenant: string | undefined
    readonly limit: number
    readonly after?: string | undefined
  }): Promise<{ readonly locks: readonly ShellLockInfo[]; readonly next: string | null }>
}

/** What a key holds, or held at a revision. */
export interface ShellEntry {
  readonly key: string
  readonly revision: bigint
  /** `undefined`: the key was deleted. */
  readonly value: string | undefined
  readonly expiresAt: Date | undefined
  readonly modifiedAt: Date | undefined
}

/** One change that a watcher is told of; without a key: it has missed some. */
export interface ShellChange {
  readonly kind: string
  readonly key?: string
  readonly revision?: bigint
  /** What was set. */
  readonly value?: string | undefined
}

export interface ShellKeys {
  list(options: {
    readonly prefix: string
    readonly durability: Durability
    readonly limit: number
    readonly tenant: string | undefined
  }): Promise<{ readonly entries: readonly ShellEntry[]; readonly more: boolean }>
  /** The kept revisions of a key, newest first. */
  revisions(
    key: string,
    options: { readonly tenant: string | undefined; readonly limit: number },
  ): Promise<readonly ShellEntry[]>
  /** Resolves once every change that is committed from then on will be told. */
  watch(
    prefix: string,
    options: { readonly tenant: string | undefined; readonly signal: AbortSignal },
  ): Promise<AsyncIterable<ShellChange>>
}

/** What a script answered. */
export interface ScriptAnswer {
  readonly type: 'set' | 'notset' | 'get' | 'exists' | 'doesnotexist' | 'deleted' | 'extended' | 'none'
  readonly revision: bigint
  readonly values: readonly ScriptValue[]
}

export interface ScriptValue {
  /** `undefined` for a value that is of no key. */
  readonly key: string | undefined
  readonly value: string
  readonly revision: bigint
}

/** What the shell works through. A test gives others. */
export interface ShellServices {
  readonly sequences: Pick<Sequences, 'create' | 'next' | 'reserve' | 'get' | 'delete' | 'list'>
  readonly locks: ShellLocks
  readonly keys: ShellKeys
  readonly script: (
    text: string,
    params: Readonly<Record<string, string>>,
    options: { readonly tenant: string | undefined; readonly signal: AbortSignal },
  ) => Promise<ScriptAnswer>
}
