import fs from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { root } from '../../support/migrated.ts'
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
}, 120_000)
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
}, 120_000)

it('says of the guide’s handlers what the guide says', async () => {
  const guide = fs.readFileSync(path.join(root, 'docs/guides/testing.md'), 'utf8')
  const [, app = ''] = /```ts\n\/\/ file: app\.ts\n([\s\S]*?)```/.exec(guide) ?? []
  // The command replaces the resource before anything connects.
  const text = app.replace(
    'declare function connect(): Mailer',
    'const connect = (): Mailer => { throw new Error() }',
  )
  project.write('guide.ts', `${text}\nexport default app\n`)
  project.write(
    'orders.sql',
    `create table orders (id text, status text); insert into orders values ('42', 'new')`,
  )
  const args = ['--input', 'input.json', '--setup', 'orders.sql']

  const naive = await project.run(['crash-test', 'guide.ts', 'sales.naive', ...args])
  const [, said = ''] = /```text\n([^\n]*)/.exec(guide) ?? []
  expect(said).toContain('sales.naive')
  expect(naive.stdout.split('\n')[0]).toBe(said)
  const confirm = await project.run(['crash-test', 'guide.ts', 'sales.confirm', ...args])
  expect([confirm.code, confirm.stdout.split('\n')[0]]).toEqual([
    0,
    'job "sales.confirm": 9 steps, dying at any of them does no harm',
  ])
}, 120_000)

it('prints JSON', async () => {
  const { stdout, code } = await project.run(['crash-test', 'app.ts', 'naive', ...given, '--json'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({
    job: 'naive',
    ok: false,
    expected: { enqueued: [], tables: { log: [{ what: '42' }] } },
    points: [{ ok: true }, { ok: true }, { ok: false, name: 'transaction committed' }, { ok: false }],
  })
}, 120_000)

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
}, 120_000)
