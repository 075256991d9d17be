import { checkNumber, checkOneOf } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { type Database, run } from '../driver/operation.ts'
import { checkJobId } from './job-id.ts'
import {
  type ListedEffect,
  listDoubtfulEffects,
  listEffectsInState,
  listEffectsOfJob,
} from './sql/list-effects.ts'

export interface ListEffectsOptions {
  /** Default: those in doubt of which no call is under way, which wait for somebody's decision. */
  readonly state?: string | undefined
  /** Those whose newest call is of this job, or about which it asks; in any state. */
  readonly jobId?: string | undefined
  /** Rows of a page: 1 to 1,000. Default: 50. */
  readonly limit?: number | undefined
  /** The cursor that the page before gave. */
  readonly after?: string | undefined
}

export interface EffectPage {
  readonly effects: readonly Omit<ListedEffect, 'intendedMicros'>[]
  /** Give it as `after` for the next page; null: this is the last. */
  readonly next: string | null
}

export const effectStates = ['uncertain', 'intended', 'happened', 'open'] as const

const START = { afterMicros: -1n, afterTenant: '', afterName: '', afterKey: '' } as const

/**
 * A page of the ledger, in the order in which effects were intended last. An effect that is called while pages are read
 * moves to the end, and may be seen twice.
 *
 * @throws {InvalidArgumentError} A filter cannot be right. Nothing was sent.
 */
export async function listEffects(database: Database, options: ListEffectsOptions = {}): Promise<EffectPage> {
  const { state, jobId, after } = options
  if (state !== undefined && jobId !== undefined) {
    const problem = 'cannot be given together with a job: its effects are few, and all are listed'
    throw new InvalidArgumentError({ field: 'state', problem })
  }
  const limit = checkNumber('limit', options.limit, limits.pageRows)
  // One more than is shown tells whether there is a next page.
  const page = { ...(after === undefined ? START : readCursor(after)), limit: limit + 1 }
  const rows =
    jobId !== undefined
      ? await run(database, listEffectsOfJob, { ...page, jobId: checkJobId(jobId) })
      : state !== undefined
        ? await run(database, listEffectsInState, {
            ...page,
            state: checkOneOf('state', state, effectStates),
          })
        : await run(database, listDoubtfulEffects, page)
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return {
    effects: shown.map(withoutCursor),
    next: last === undefined ? null : cursorOf(last),
  }
}

function withoutCursor(row: ListedEffect): Omit<ListedEffect, 'intendedMicros'> {
  const { intendedMicros: _, ...effect } = row
  return effect
}

function cursorOf({ intendedMicros, tenant, name, key }: ListedEffect): string {
  return Buffer.from(JSON.stringify([intendedMicros, tenant, name, key])).toString('base64url')
}

function readCursor(text: string) {
  try {
    const parts = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown
    if (Array.isArray(parts) && parts.length === 4 && parts.every((part) => typeof part === 'string')) {
      const [micros = '', afterTenant = '', afterName = '', afterKey = ''] = parts as string[]
      if (/^\d{1,17}$/.test(micros)) return { afterMicros: BigInt(micros), afterTenant, afterName, afterKey }
    }
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError({ field: 'after', problem: 'must be the cursor that a page before gave' })
}
