import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { copyPackage, type Edit } from '../chaos/package-copy.ts'
import { createDatabase } from '../support/database.ts'
import { startProgram } from '../support/processes.ts'

/*
 * The library as it is, and with the part taken out that a promise rests on: what the tests of the promise look for has to
 * fail then, or they would prove nothing. In a process of its own, which may end by what was taken out.
 */

/** What became of a job in a program over a copy of the library; `undefined` if the program ended before it could tell. */
async function play(promise: string, edits: readonly Edit[]): Promise<unknown> {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-promise-'))
  try {
    const { entry } = copyPackage(path.join(dir, 'package'), edits)
    await using db = await createDatabase()
    const args = [JSON.stringify({ entry: pathToFileURL(entry).href, database: db.url, promise })]
    await using program = startProgram('test/faults/programs/promises.ts', { args })
    await program.exited
    return program.messages.find(({ kind }) => kind === 'ended')?.['state']
  } finally {
    fs.rmSync(dir, { recursive: true, force: true })
  }
}

const withoutLooks: readonly Edit[] = [
  {
    file: 'src/worker/pace.ts',
    find: 'Math.min(nowMs + FALLBACK * this.#maxPollMs, this.#recheckAtMs(pace, nowMs))',
    replace: 'Number.POSITIVE_INFINITY',
  },
  {
    file: 'src/worker/maintenance/maintenance.ts',
    find: 'return Math.min(dueInMs, expiryInMs, options.maxPollMs(), ANNOUNCED_DUE_MS)',
    replace: 'return Math.min(dueInMs, expiryInMs, 3_600_000)',
  },
]

it('without its looks, a worker that hears nothing starts nothing', async () => {
  expect(await play('starts without notifications', [])).toBe('completed')
  expect(await play('starts without notifications', withoutLooks)).toBe(null)
})

it('without the nearest storable text, a result that JSON cannot hold keeps its job from completing', async () => {
  const asItIs: Edit = {
    file: 'src/worker/outcome.ts',
    find: 'toRecordableJson(value, { maxBytes: limits.resultBytes.default })',
    replace: '{ json: JSON.stringify(value) }',
  }
  expect(await play('records what JSON cannot hold', [])).toBe('completed')
  expect(await play('records what JSON cannot hold', [asItIs])).not.toBe('completed')
})
