import { afterAll, beforeAll, expect, it } from 'vitest'
import { CliProject } from '../cli-project.ts'

let project: CliProject

beforeAll(() => {
  project = new CliProject()
  project.write(
    'app.ts',
    `import { defineApp, defineJob } from 'holdfast'
    import { z } from 'zod'
    const input = z.object({ orderId: z.string() })
    const note = "insert into log (what) values ($1)"
    const naive = defineJob({ name: 'naive', input, idempotent: true, handler: async (ctx, { orderId }) => {
      await ctx.transaction((tx) => tx.query(note, [orderId]))
    } })
    const mended = defineJob({ name: 'mended', input, idempotent: true, handler: async (ctx, { orderId }) => {
      await ctx.commit((tx) => tx.query(note, [orderId]))
    } })
    export default defineApp({ name: 'shop', database: 'postgres://nobody@127.0.0.1:1/none', jobs: [naive, mended] })`,
  )
  project.write('input.json', '{ "orderId": "42" }')
  project.write('schema.sql', 'create table log (at timestamptz default now(), what text);')
}, 60_000)
afterAll(async () => await project[Symbol.asyncDispose]())

const given = ['--input', 'input.json', '--setup', 'schema.sql']

it('prints the table, and ends with 1 when a step does harm and with 0 when none does', async () => {
  const naive = await project.run(['crash-test', 'app.ts', 'naive', ...given])
  expect(naive.stderr).toBe('')
  expect(naive.stdout).toContain('job "naive": 4 steps, dying at 2 of them does harm')
  expect(naive.stdout).toContain('tables.log: 2 times {"what":"42"}')
  expect(naive.code).toBe(1)

  const mended = await project.run(['crash-test', 'mended', ...given])
  expect(mended.stdout).toContain('job "mended": 3 steps, dying at any of them does no harm')
  expect(mended.code).toBe(0)
}, 60_000)

it('prints JSON', async () => {
  const { stdout, code } = await project.run(['crash-test', 'app.ts', 'naive', ...given, '--json'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({
    job: 'naive',
    ok: false,
    expected: { enqueued: [], tables: { log: [{ what: '42' }] } },
    points: [{ ok: true }, { ok: true }, { ok: false, name: 'transaction committed' }, { ok: false }],
  })
}, 60_000)

it('refuses what it cannot find, with exit code 2', async () => {
  for (const args of [
    ['app.ts', 'nobody', ...given],
    ['app.ts', 'naive', '--input', 'nowhere.json'],
    ['app.ts', 'naive', '--input', 'schema.sql'],
    ['app.ts', 'naive', 'more'],
    [],
  ]) {
    const { code, stderr } = await project.run(['crash-test', ...args])
    expect([args, code]).toEqual([args, 2])
    expect(stderr).toMatch(/^error: /)
  }
}, 60_000)
