import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../test/chaos/random.ts'
import { mutate, ScriptGenerator } from '../../test/support/script-fuzz.ts'
import { ScriptError, ScriptSyntaxError } from './errors.ts'
import { highlight } from './highlight.ts'
import { isComplete } from './is-complete.ts'
import { prepareScript } from './prepare.ts'

/** More by `HOLDFAST_SCRIPT_FUZZ=1000000`, others by `HOLDFAST_SEED`. */
const COUNT = Number(process.env['HOLDFAST_SCRIPT_FUZZ'] ?? 100_000)
const SEED = Number(process.env['HOLDFAST_SEED'] ?? Date.now() % 1_000_000)

describe('parser and compiler', () => {
  it(
    `take ${COUNT} scripts, broken ones among them, without a fault of their own (HOLDFAST_SEED=${SEED})`,
    () => {
      const random = seededRandom(SEED)
      const generator = new ScriptGenerator(random)
      const met = { program: 0, syntax: 0, error: 0 }
      for (let count = 0; count < COUNT; count += 1) {
        let script = generator.script()
        if (random.chance(0.5)) script = mutate(script, random)
        try {
          met[outcomeOf(script, count % 10 === 0)] += 1
        } catch (cause) {
          throw new Error(`script ${count} of HOLDFAST_SEED=${SEED}: ${JSON.stringify(script)}`, { cause })
        }
      }
      // Enough of each, lest the generator makes nothing but mistakes.
      expect(Math.min(met.program, met.syntax, met.error)).toBeGreaterThan(COUNT / 200)
    },
    60_000 + COUNT,
  )
})

function outcomeOf(script: string, colours: boolean): 'program' | 'syntax' | 'error' {
  if (colours) checkColours(script)
  const lines = script.split('\n').length
  try {
    const { program } = prepareScript(script)
    checkJumps(program.code, new Set(program.places.map(([at]) => at)))
    return 'program'
  } catch (error) {
    if (!(error instanceof ScriptSyntaxError || error instanceof ScriptError)) throw error
    if (error.line < 1 || error.line > lines)
      throw new Error(`line ${error.line} of ${lines}`, { cause: error })
    if (error instanceof ScriptError) return 'error'
    const line = script.split('\n')[error.line - 1] as string
    if (error.column < 1 || error.column > Array.from(line).length + 1) throw error
    return 'syntax'
  }
}

function checkColours(script: string): void {
  isComplete(script)
  const pieces = highlight(script)
  if (pieces.map(({ text }) => text).join('') !== script) throw new Error('highlight lost text')
}

/** Every jump goes to the start of an instruction. */
function checkJumps(code: readonly number[], places: ReadonlySet<number>): void {
  const targets = { 3: 2, 8: 1, 12: 4, 18: 3 } as Readonly<Record<number, number>>
  for (const at of places) {
    const operand = targets[code[at - 1] as number]
    const target = operand === undefined ? undefined : code[at - 1 + operand]
    if (target !== undefined && !places.has(target)) throw new Error(`jump from ${at} to ${target}`)
  }
}
