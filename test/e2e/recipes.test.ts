import fs from 'node:fs/promises'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { ensureBuilt } from '../../scripts/built.mjs'
import { codeBlocks, pages } from '../contracts/markdown.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { root } from '../support/migrated.ts'
import { startProgram } from '../support/processes.ts'

const DEADLINE_MS = 120_000

// The recipes import the package by its name.
beforeAll(() => {
  if (!ensureBuilt()) throw new Error('the package does not build')
})

interface Run {
  readonly code: number | null
  readonly output: string
  readonly broken: readonly string[]
}

async function run(db: TestDatabase, file: string, args: readonly string[] = []): Promise<Run> {
  await using program = startProgram(file, { args, env: { DATABASE_URL: db.url } })
  const { code } = await program.exited
  const { output } = program
  const broken = Array.from(output.matchAll(/^broken {2}(.*)$/gm), ([, promise = '']) => promise)
  return { code, output, broken }
}

describe('each recipe keeps its promise', () => {
  const recipes = [
    'inventory',
    'rate-limiting',
    'ordered-ids',
    'feature-flags',
    'service-discovery',
    'leader-election',
    'idempotent-jobs --variant=lock',
    'idempotent-jobs --variant=script',
  ].map((line) => {
    const [name = '', ...args] = line.split(' ')
    return { line, name, args }
  })

  it.each(recipes)(
    '$line',
    async ({ name, args }) => {
      await using db = await createDatabase()
      const { code, output, broken } = await run(db, mainOf(name), ['--quick', ...args])
      expect({ code, broken }, output).toEqual({ code: 0, broken: [] })
      expect(output).toMatch(/^kept /m)
    },
    DEADLINE_MS,
  )

  it('each folder of recipes is among them, and has a guide', async () => {
    const folders = await fs.readdir(path.join(root, 'examples/recipes'), { withFileTypes: true })
    const names = folders.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
    const guides = pages().map(({ file }) => file)
    for (const name of names.filter((folder) => folder !== 'stage')) {
      expect(recipes.map((recipe) => recipe.name)).toContain(name)
      expect(guides).toContain(`docs/guides/recipes/${name}.md`)
    }
  })
})

it('the guides print the scripts that the recipes run', async () => {
  const guideOf = (name: string) => pages().find(({ file }) => file === `docs/guides/recipes/${name}.md`)
  const sourceOf = async (file: string) =>
    await fs.readFile(path.join(root, 'examples/recipes', file), 'utf8')
  const limits = codeBlocks(guideOf('rate-limiting') ?? { file: '', text: '' })
  const scripts = limits.filter(({ info }) => info === 'text')
  expect(scripts).toHaveLength(2)
  for (const { code } of scripts) expect(await sourceOf('rate-limiting/limits.ts')).toContain(code)
  const [reserve] = /const RESERVE = `[^`]*`/.exec(guideOf('inventory')?.text ?? '') ?? ['no script']
  expect(await sourceOf('inventory/reserve.ts')).toContain(reserve)
})

describe('without what a recipe is about its promise is broken, and it says so', () => {
  it.each([
    ['inventory', 'nothing is oversold: held + left = stock'],
    ['rate-limiting', 'exactly 10 pass in a window'],
    ['ordered-ids', 'there is no gap, whatever was rolled back'],
    ['feature-flags', 'no change is lost'],
    ['leader-election', 'no decision comes after one of a later leader'],
    ['idempotent-jobs', 'none is charged twice'],
  ])(
    '%s: %s',
    async (name, promise) => {
      await using db = await createDatabase()
      const { code, output, broken } = await run(db, mainOf(name), ['--quick', '--unguarded'])
      expect(code, output).toBe(1)
      expect(broken, output).toContain(promise)
    },
    DEADLINE_MS,
  )
})

/** What the guide leaves to its reader, and five workers that come at the same time. */
function asProgram(recipe: string): string {
  return `import { defineApp } from 'holdfast'
const app = defineApp({ name: 'seed', database: process.env.DATABASE_URL, jobs: [] })
let processed = 0
async function processInvoice(jobId: string, token: bigint, signal: AbortSignal) {
  if (jobId !== '7' || token < 1n || signal.aborted) throw new Error('not what the recipe gives')
  processed += 1
  await new Promise((resolve) => setTimeout(resolve, 50))
}
async function once(jobId: string): Promise<unknown> {
${recipe}
}
const answers = await Promise.all(Array.from({ length: 5 }, () => once('7')))
const status = (await app.keys.get('jobs/7/status'))?.text()
await app.close()
console.log(JSON.stringify({ kind: 'ended', processed, answers, status }))
`
}

describe("the guide's recipe of idempotent jobs runs as printed", () => {
  const page = pages().find(({ file }) => file === 'docs/guides/recipes/idempotent-jobs.md')
  const printed = codeBlocks(page ?? { file: '', text: '' })
    .filter(({ info }) => info === 'ts nocheck')
    .map(({ code }) => code.replace(/^\/\/ nocheck.*\n/, ''))

  async function runPrinted(recipe: string) {
    await using db = await createDatabase()
    await fs.mkdir(path.join(root, '.holdfast'), { recursive: true })
    const folder = await fs.mkdtemp(path.join(root, '.holdfast/recipe-'))
    try {
      const file = path.join(folder, 'main.ts')
      await fs.writeFile(file, asProgram(recipe))
      await using program = startProgram(file, { env: { DATABASE_URL: db.url } })
      const exit = await program.exited
      expect(exit, program.output).toEqual({ code: 0, signal: null })
      return program.messages.at(-1)
    } finally {
      await fs.rm(folder, { recursive: true, force: true })
    }
  }

  it('in TypeScript: one of five workers processes the invoice', async () => {
    const recipe = printed.find((code) => code.includes('app.locks.acquire'))
    expect(await runPrinted(recipe ?? 'throw')).toMatchObject({ processed: 1, status: 'completed' })
  })

  it('as a script: one of five makes the transition', async () => {
    const recipe = printed.find((code) => code.includes('app.script'))
    const ended = await runPrinted(`${recipe}\nreturn r.text()`)
    expect(ended).toMatchObject({ processed: 0, status: 'completed' })
    expect(((ended?.['answers'] ?? []) as string[]).sort()).toEqual([
      ...Array.from({ length: 4 }, () => 'already-completed'),
      'completed',
    ])
  })
})

function mainOf(name: string): string {
  return `examples/recipes/${name}/main.ts`
}
