import { InvalidArgumentError } from '../base/errors.ts'
import type { JobContext } from './context.ts'

/** What `authorize` may look at. */
export type AuthorizeContext = Pick<JobContext, 'job' | 'context' | 'signal' | 'log'>

/**
 * What `authorize` decides. `true` or nothing: the handler is called, as captured. `false` or `refuse`: the attempt fails
 * with an `AuthorizationRefusedError` and is retried as any other. `discard`: the job is discarded at once, with that reason.
 */
export type Authorization = boolean | void | { readonly refuse: string } | { readonly discard: string }

/**
 * Decides before the handler whether whoever asked for the job may still act. What it throws fails the attempt; so does
 * an answer that is none of {@link Authorization}.
 */
export type Authorize<Input = unknown> = (
  ctx: AuthorizeContext,
  input: Input,
) => Authorization | Promise<Authorization>

/**
 * Checks an `authorize`.
 *
 * @throws {InvalidArgumentError} It is neither a function nor left out.
 */
export function checkAuthorize<Input>(value: Authorize<Input> | undefined): Authorize<Input> | undefined {
  if (value === undefined || typeof value === 'function') return value
  throw new InvalidArgumentError({ field: 'authorize', problem: 'must be a function, or left out' })
}
