import { describe, expect, it } from 'vitest'
import { channelOf } from '../base/channel.ts'
import { readMigrations, renderMigration, splitStatements } from './migrate.ts'

describe('the migrations', () => {
  it('are numbered from 1 without a gap, and say whether older releases may go on, and what they lock', async () => {
    const migrations = await readMigrations()
    expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, index) => index + 1))
    for (const { text, name } of migrations) expect(text, name).toMatch(/^-- (compatible|breaking): .+\n/)
  })
})

describe('rendering', () => {
  const text = `create table :schema.t (x text default ':schema.x');\nselect :schema_literal, :channel, nextval(':schema.job_seq'::regclass), :schemas`

  it('puts each name in as what it is there: identifier, literal, or both', () => {
    expect(renderMigration(text, `o'b"x`)).toBe(
      `create table "o'b""x".t (x text default '"o''b""x"."x"');\nselect 'o''b"x', '${channelOf(`o'b"x`)}', nextval('"o''b""x"."job_seq"'::regclass), :schemas`,
    )
  })

  it.each([':schema', ':channel', ':schema_literal', "':schema.x'", '$&', '$1'])(
    'takes a schema named %j literally',
    (schema) => {
      expect(renderMigration(':schema.t', schema)).toBe(`"${schema}".t`)
      expect(renderMigration(':schema_literal', schema)).toBe(`'${schema.replaceAll("'", "''")}'`)
    },
  )

  it('writes backslashes so that no setting changes their meaning', () => {
    expect(renderMigration(':schema_literal', 'a\\b')).toBe(String.raw`E'a\\b'`)
  })
})

describe('splitting', () => {
  it('ends statements at semicolons that end a line, outside of function bodies', () => {
    const body = 'create function f() as $function$\nbegin\n  x;\nend\n$function$;'
    expect(
      splitStatements(`-- a remark;\nselect 1;\n${body}\nselect ';' as a,\n  2;\nselect 3`).map((s) =>
        s.trim(),
      ),
    ).toEqual(['select 1;', body, "select ';' as a,\n  2;", 'select 3'])
  })
})

describe('the channel', () => {
  it('is a short name, another one for every schema', () => {
    const schemas = ['a', 'A', 'a ', 'x'.repeat(63), '漢字', '']
    const channels = schemas.map(channelOf)
    expect(new Set(channels).size).toBe(schemas.length)
    for (const channel of channels) expect(channel).toMatch(/^holdfast_[0-9a-f]{32}$/)
  })
})
