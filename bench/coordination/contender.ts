/** What is measured, in the order of the table. `n` is different at every call. */
export interface Operations {
  /** Acquires a free lock and releases it. */
  readonly lock: (n: number) => Promise<void>
  /** Writes a key that exists. */
  readonly set: (n: number) => Promise<void>
  readonly get: (n: number) => Promise<void>
  /** Reads a key and writes it back on the condition that it is as it was read. */
  readonly compareAndSet: (n: number) => Promise<void>
  /** Reads a key; if it has no value, writes it and another: three commands, all or none. */
  readonly script: (n: number) => Promise<void>
}

export type OperationName = keyof Operations

/** Somebody who wants one lock again and again. */
export interface Waiter {
  /** Resolves once the lock is had, with how to give it back. */
  acquire(): Promise<() => Promise<void>>
  close(): Promise<void>
}

/** One way of doing it. What a contender leaves out, it has nothing comparable for. */
export interface Contender {
  readonly name: string
  readonly operations: Partial<Operations>
  /** `resource` is the same for all. Connections are the waiter's own: it stands for a process. */
  openWaiter?(resource: string): Promise<Waiter>
  close(): Promise<void>
}

/** Keys there are, so that operations at once seldom meet. */
export const KEYS = 1000
export const VALUE = 'x'.repeat(100)

export function keyOf(n: number): string {
  return `bench/key/${n % KEYS}`
}
