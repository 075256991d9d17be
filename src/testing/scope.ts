import { AsyncLocalStorage } from 'node:async_hooks'
import type { EffectOwner } from '../base/errors.ts'

/** Ends the transactions of a process that is played dead; nobody sees it but the kit. */
export class ProcessDiedError extends Error {
  override readonly name = 'ProcessDiedError'

  constructor() {
    super('this attempt was killed by the test kit; nothing of it reaches the database any more')
  }
}

/**
 * The life of the process that an attempt runs in, as far as the kit plays it. A dead one acts no more: what it waits
 * for never comes, what it asks for is never sent, and its open transaction is rolled back.
 */
export class Life {
  #isDead = false
  #die: (error: Error) => void = () => {}
  /** Rejects at the death. */
  readonly died: Promise<never>

  constructor() {
    this.died = new Promise((_, reject) => (this.#die = reject))
    // A life that nobody waits for may end too.
    this.died.catch(() => {})
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** Safe to repeat. */
  die(): void {
    this.#isDead = true
    this.#die(new ProcessDiedError())
  }

  /** Runs `act`, unless dead; gives what came of it, unless dead by then. */
  async live<T>(act: () => Promise<T>): Promise<T> {
    if (this.#isDead) return await never
    try {
      const value = await act()
      return this.#isDead ? await never : value
    } catch (error) {
      if (this.#isDead) return await never
      throw error
    }
  }
}

/** What a dead attempt waits for. */
export const never = new Promise<never>(() => {})

/** What runs inside an attempt, and whatever it sets off, is found by its async context. */
export interface Scope {
  readonly life: Life
  /** Tells of a step that the attempt takes; never resolves if it dies there. */
  readonly reached: (step: string) => Promise<void> | undefined
}

/** Who has declared what it does: the job of an attempt, or a producer. */
export interface Declarer extends EffectOwner {
  readonly effects: readonly string[]
}

const declarers = new AsyncLocalStorage<Declarer>()

/** Whose declaration holds for the caller, if anybody's. */
export function currentDeclarer(): Declarer | undefined {
  return declarers.getStore()
}

/** Runs `act` under the declaration of `declarer`. */
export function runAs<T>(declarer: Declarer, act: () => T): T {
  return declarers.run(declarer, act)
}

const scopes = new AsyncLocalStorage<Scope>()

/** The attempt that the caller runs in, if any. */
export function currentScope(): Scope | undefined {
  return scopes.getStore()
}

/** Runs `act` as part of an attempt. */
export function runInScope<T>(scope: Scope, act: () => T): T {
  return scopes.run(scope, act)
}
