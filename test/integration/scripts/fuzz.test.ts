import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  HoldfastError,
  ScriptAbortedError,
  ScriptError,
  ScriptSyntaxError,
  ScriptThrownError,
} from '../../../src/index.ts'
import { seededRandom } from '../../chaos/random.ts'
import { mutate, ScriptGenerator } from '../../support/script-fuzz.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

/** More by `HOLDFAST_SCRIPT_RUNS=100000`, others by `HOLDFAST_SEED`. */
const RUNS = Number(process.env['HOLDFAST_SCRIPT_RUNS'] ?? 400)
const SEED = Number(process.env['HOLDFAST_SEED'] ?? Date.now() % 1_000_000)

const PARAMS = { p: 'x/p', n: '3', key: 'a' }

describeEachApp('any script', ({ open }) => {
  let opened: EachApp
  beforeAll(async () => {
    opened = await open({ worker: false, jobs: [] })
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  it(
    `ends with an answer or an error that has a line, and leaves nothing open (HOLDFAST_SEED=${SEED}, ${RUNS} runs)`,
    async () => {
      const random = seededRandom(SEED)
      const generator = new ScriptGenerator(random)
      const met = { answers: 0, errors: 0, syntax: 0 }
      for (let run = 0; run < RUNS; run += 1) {
        const made = generator.script()
        const script = random.chance(0.1) ? mutate(made, random) : made
        try {
          met[await outcomeOf(opened, script, run % 3 === 0)] += 1
        } catch (cause) {
          throw new Error(`script ${run} of HOLDFAST_SEED=${SEED}: ${JSON.stringify(script)}`, { cause })
        }
      }
      expect(met.answers).toBeGreaterThan(RUNS / 20)
      expect(met.errors).toBeGreaterThan(RUNS / 20)
      const [left] = await opened.sql<{ rows: number; transactions: number }>(
        `select (select count(*) from holdfast.key_value where revision < 0)::int
            + (select count(*) from holdfast.ephemeral_key_value where revision < 0)::int as rows,
          (select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%')::int as transactions`,
      )
      expect(left).toEqual({ rows: 0, transactions: 0 })
    },
    60_000 + RUNS * 20,
  )
})

async function outcomeOf(
  { app }: EachApp,
  script: string,
  inTransaction: boolean,
): Promise<'answers' | 'errors' | 'syntax'> {
  const options = { timeoutMs: 2000 }
  try {
    if (!inTransaction) await app.script(script, PARAMS, options)
    else
      await app.transaction(async (tx) => {
        try {
          await app.script(script, PARAMS, { ...options, tx })
        } finally {
          // The transaction is as usable after a script that failed as after one that did not.
          await tx.query('select 1')
        }
      })
    return 'answers'
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    if (error instanceof ScriptSyntaxError) return 'syntax'
    const isOurs =
      error instanceof ScriptError ||
      error instanceof ScriptAbortedError ||
      error instanceof ScriptThrownError
    if (!isOurs || error.line < 1 || error.line > script.split('\n').length) throw error
    return 'errors'
  }
}
