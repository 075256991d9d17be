import { expect } from 'vitest'
import type { App } from '../../../src/index.ts'

/** Scripts whose answers no setting of a database may change: those with backslashes, numbers and characters in them. */
export async function scriptsRound({ script }: { readonly script: App['script'] }): Promise<void> {
  const tenant = "s\\'€"
  const run = async (text: string) => (await script(text, { text: 'é\\😀"\'\n' }, { tenant })).text()
  expect(await run('set `a\\b` @text; get `a\\b`')).toBe('é\\😀"\'\n')
  expect(await run('return to_json(@text)')).toBe('"\\u00E9\\\\\\uD83D\\uDE00\\u0022\\u0027\\n"')
  expect(await run('return len("a😀")')).toBe('3')
  expect(await run('return to_float("1.5e3") / 2')).toBe('750')
  expect(await run('return to_int(" 42 ") + 1')).toBe('43')
}
