import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { type AnyOperation, readOperations } from './operations.ts'

/** What PostgreSQL may give for a declared column type. JSON and ids travel as text too. */
const columnTypes: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  bool: ['boolean'],
  int4: ['integer'],
  int8: ['bigint'],
  float8: ['double precision'],
  instant: ['bigint'],
  'int8[]': ['text'],
  json: ['text', 'json'],
  bytes: ['text'],
}

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const operations = await readOperations()

interface Described {
  readonly params: readonly string[]
  readonly columns: ReadonlyMap<string, string>
}

let db: TestDatabase

beforeAll(async () => {
  db = await createDatabase()
})

afterAll(async () => {
  await db.drop()
})

/** Asks PostgreSQL what it takes and gives. */
async function describeStatement(operation: AnyOperation): Promise<Described> {
  const client = await db.connect()
  await client.query('deallocate all')
  await client.query(`prepare asked as ${operation.statement('holdfast').text}`)
  const { rows } = await client.query<{ params: string[]; results: string[] | null }>(
    `select parameter_types::text[] as params, result_types::text[] as results from pg_prepared_statements where name = 'asked'`,
  )
  const nulls = operation.statement('holdfast').text.matchAll(/\$(\d+)/g)
  const used = Math.max(0, ...[...nulls].map((match) => Number(match[1])))
  const names = await client
    .query({
      text: operation.statement('holdfast').text,
      values: Array.from({ length: used }, () => null),
      // Names come with the description; an error of the nulls comes after it and is of no interest.
    } as { text: string; values: null[] })
    .then(
      ({ fields }) => fields.map(({ name }) => name),
      () => undefined,
    )
  const [row] = rows
  const results = row?.results ?? []
  return {
    params: row?.params ?? [],
    columns: new Map((names ?? (await namesOf(operation))).map((name, i) => [name, results[i] ?? 'void'])),
  }
}

/** For a statement that refuses nulls: its description alone, by a cursor that is never read. */
async function namesOf(operation: AnyOperation): Promise<readonly string[]> {
  const client = await db.connect()
  const { text } = operation.statement('holdfast')
  const values = Object.values(operation.params).map((type) => sample(type))
  const { fields } = await client.query(text, values)
  return fields.map(({ name }) => name)
}

function sample(type: string): string | null {
  if (type.endsWith('[]')) return '{}'
  if (type === 'json') return '[]'
  if (type === 'bool') return 'true'
  // Some texts are UUIDs.
  return type.startsWith('text') ? '00000000-0000-4000-8000-000000000000' : '1'
}

describe('the statements', () => {
  it('are all found: one in each file, each under its own name', () => {
    expect(operations.length).toBeGreaterThan(20)
    const names = operations.map(({ operation }) => operation.name)
    expect(new Set(names).size).toBe(names.length)
  })

  it.each(operations.map(({ file, operation }) => [operation.name, file, operation] as const))(
    '%s (%s) takes and gives what it declares',
    async (_, __, operation) => {
      const { params, columns } = await describeStatement(operation)

      // Every parameter is sent as text and cast: no driver's own encoding is relied upon.
      expect(params).toEqual(Object.keys(operation.params).map(() => 'text'))
      for (const [name, type] of Object.entries(operation.columns)) {
        const given = columns.get(snake(name))
        expect(columnTypes[type.replace('?', '')], `column ${name} is ${type}`).toContain(given)
      }
      // What is not declared is there only to be computed.
      const extra = [...columns.keys()].filter(
        (name) => !Object.keys(operation.columns).map(snake).includes(name),
      )
      expect(extra.filter((name) => !['announced', 'announce_cancel', 'told'].includes(name))).toEqual([])
    },
  )

  it.each(operations.map(({ operation }) => [operation.name, operation] as const))(
    '%s names our objects with their schema, and says its own name',
    (_, operation) => {
      const { text } = operation.statement('my "schema"')
      expect(text.startsWith(`/* holdfast:${operation.name} */ `)).toBe(true)
      expect(text).not.toMatch(/\bholdfast\./)
      expect(text).toContain('"my ""schema"""."')
    },
  )
})
