import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ScriptAbortedError,
  ScriptError,
  type ScriptResult,
  ScriptSyntaxError,
  ScriptThrownError,
} from '../../../src/index.ts'
import { deviations } from '../../vectors/script-deviations.ts'
import { type ExpectedValue, readVectors, type ScriptVector, textOf } from '../../vectors/script-vectors.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

const vectors = readVectors()

interface Outcome {
  readonly result?: ScriptResult
  readonly error?: unknown
  readonly state: ReadonlyMap<
    string,
    { readonly value: string | null; readonly live: boolean; readonly revision: number }
  >
}

describeEachApp('the vectors of the script language', ({ open }) => {
  let opened: EachApp
  const outcomes = new Map<string, Outcome>()

  beforeAll(async () => {
    opened = await open({ worker: false, jobs: [] })
    // Each in a tenant of its own; together, so that their sleeps are one.
    await Promise.all(
      vectors.map(async (vector) => {
        outcomes.set(vector.id, await runVector(opened, vector))
      }),
    )
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  it.each(vectors)('$area, $id: $why', ({ id, expect: expected }) => {
    const outcome = outcomes.get(id) as Outcome
    const told = tell(outcome)
    expect(told).toMatchObject({
      ...(expected.error === undefined ? { error: undefined } : { error: expectedError(expected.error) }),
      ...(expected.result === undefined ? {} : { result: expected.result }),
    })
    for (const [key, state] of Object.entries(expected.state ?? {})) {
      const wanted = typeof state === 'object' && state !== null ? state.repeat.repeat(state.times) : state
      const found = outcome.state.get(key)
      // Where a value is expected it may have expired since: the times to live are shorter than a slow test.
      const value = wanted === null && found?.live !== true ? null : (found?.value ?? null)
      expect([key, value]).toEqual([key, wanted])
    }
    for (const [key, revision] of Object.entries(expected.revisions ?? {}))
      expect([key, outcome.state.get(key)?.revision]).toEqual([key, revision])
  })
})

describe('deviations from the vectors', () => {
  it('are of vectors that exist, and say why', () => {
    const ids = new Set(vectors.map(({ id }) => id))
    for (const [id, { why }] of Object.entries(deviations)) {
      expect(ids).toContain(id)
      expect(why.length).toBeGreaterThan(20)
    }
  })
})

async function runVector({ app, sql }: EachApp, vector: ScriptVector): Promise<Outcome> {
  const tenant = vector.id
  const captured: Record<string, string> = {}
  for (const step of vector.setup) {
    if (typeof step === 'object' && 'sleepMs' in step) {
      await sleep(step.sleepMs)
    } else if (typeof step === 'object' && 'captureNow' in step) {
      captured[step.captureNow] = (await app.script('return current_time()')).text() as string
      await sleep(5)
    } else if (typeof step === 'object' && 'script' in step) {
      await app.script(textOf(step.script), step.params, { tenant })
    } else {
      await app.script(textOf(step), {}, { tenant })
    }
  }
  const params = { ...vector.params, ...captured }
  let outcome: Pick<Outcome, 'result' | 'error'>
  try {
    outcome = { result: await app.script(textOf(vector.script), params, { tenant }) }
  } catch (error) {
    outcome = { error }
  }
  const rows = await sql<{ key: string; value: string | null; live: boolean; revision: string }>(
    `select prefix || key as key, revision::text as revision, case when not deleted then convert_from(value, 'UTF8') end as value,
        not deleted and (expires_at > clock_timestamp()) is not false as live
      from (select '' as prefix, k.* from holdfast.key_value k
        union all select 'e:', k.* from holdfast.ephemeral_key_value k) x where tenant = $1`,
    [tenant],
  )
  const state = new Map(
    rows.map(({ key, value, live, revision }) => [key, { value, live, revision: Number(revision) }] as const),
  )
  return { ...outcome, state }
}

function tell({ result, error }: Outcome): unknown {
  if (error !== undefined) return { error: tellError(error) }
  const values = result?.values.map(
    ({ key, value, revision }): ExpectedValue => ({
      ...(key === null ? {} : { key }),
      value: Buffer.from(value).toString(),
      revision: Number(revision),
    }),
  )
  return {
    error: undefined,
    result: {
      type: result?.type,
      value: result?.text() ?? undefined,
      revision: Number(result?.revision),
      values,
    },
  }
}

function tellError(error: unknown): unknown {
  if (error instanceof ScriptSyntaxError) return { kind: 'syntax', line: error.line, column: error.column }
  if (error instanceof ScriptThrownError) return { kind: 'throw', line: error.line, message: error.text }
  if (error instanceof ScriptAbortedError) return { kind: 'aborted', line: error.line, code: error.reason }
  if (!(error instanceof ScriptError)) return { kind: 'unexpected', error }
  const kind = error.reason === 'invalid-input' ? 'invalid-input' : 'runtime'
  return { kind, line: error.line, code: error.reason }
}

/** Of an aborted script the vectors do not tell the reason apart. */
function expectedError(error: NonNullable<ScriptVector['expect']['error']>): unknown {
  const { code, ...rest } = error
  return code === undefined || code === 'aborted' ? rest : { ...rest, code }
}
