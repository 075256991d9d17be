import { TransactionRequiredError } from '../base/errors.ts'

/** An object of some library, or a function with properties, as postgres.js and Knex give them. */
export type Thing = Readonly<Record<string, unknown>>

export function isThing(value: unknown): value is Thing {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** True if `value` has all these methods. By name, not by class: an application may hold two copies of a library. */
export function hasMethods(value: Thing, names: readonly string[]): boolean {
  return names.every((name) => typeof value[name] === 'function')
}

/** The error for what cannot be used as `tx`; `problem` follows "must be an open transaction, but". */
export function refuse(problem: string, options?: ErrorOptions): TransactionRequiredError {
  return new TransactionRequiredError({ problem }, options)
}

export const ENDED = 'this one has ended'
