import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pg from 'pg'

/**
 * Writes `sql/schema.sql`: the whole schema at head, read back from a database that the migrations were applied
 * to. `node scripts/dump-schema.mjs postgres://…` (an address of a migrated database; `npm test` compares).
 *
 * Types, defaults, constraints, indexes and functions are what the catalog says, the same on PostgreSQL 14 to 18.
 * Two things the catalog does not keep come from the migrations, the latest word first: the remark beside a
 * column, and the text of a view, which each version of PostgreSQL would print in a way of its own.
 */

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
export const schemaFile = path.join(root, 'sql/schema.sql')

/** @typedef {(text: string, params?: unknown[]) => Promise<Record<string, any>[]>} Query */

/**
 * @param {Query} query
 * @param {string} [schema]
 */
export async function dumpSchema(query, schema = 'holdfast') {
  const migrations = readMigrations()
  const parts = [
    '-- The whole schema, made from sql/migrations by scripts/dump-schema.mjs. Do not edit.',
    '-- Functions come in the order of their names, and name each other.\nset check_function_bodies = off;',
    `create schema ${schema};`,
    ...(await dumpSequences(query, schema)),
    ...(await dumpEnums(query, schema)),
    ...(await dumpTables(query, schema, migrations)),
    ...(await dumpIndexes(query, schema)),
    ...(await dumpFunctions(query, schema)),
    ...(await dumpViews(query, schema, migrations)),
  ]
  return `${parts.join('\n\n')}\n`
}

/** The migrations' text, newest first. */
function readMigrations() {
  const folder = path.join(root, 'sql/migrations')
  const files = fs.readdirSync(folder).sort().reverse()
  return files.map((file) => fs.readFileSync(path.join(folder, file), 'utf8'))
}

/** @param {Query} query @param {string} schema */
async function dumpSequences(query, schema) {
  const rows = await query(
    `select sequencename as name, data_type::text as type, start_value as start, increment_by as step, cache_size as cache
     from pg_sequences where schemaname = $1 order by 1`,
    [schema],
  )
  return rows.map(
    ({ name, type, start, step, cache }) =>
      `create sequence ${schema}.${name} as ${type} start ${start} increment ${step} cache ${cache};`,
  )
}

/** @param {Query} query @param {string} schema */
async function dumpEnums(query, schema) {
  const rows = await query(
    `select t.typname as name, string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder) as labels
     from pg_type t join pg_enum e on e.enumtypid = t.oid where t.typnamespace = $1::regnamespace group by 1 order by 1`,
    [schema],
  )
  return rows.map(({ name, labels }) => `create type ${schema}.${name} as enum (${labels});`)
}

/** @param {Query} query @param {string} schema @param {string[]} migrations */
async function dumpTables(query, schema, migrations) {
  const tables = await query(
    `select c.oid, c.relname as name, pg_get_partkeydef(c.oid) as partition_key,
       c.relpersistence = 'u' as unlogged,
       (select string_agg(o, ', ' order by o) from unnest(c.reloptions) o) as options
     from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     order by c.relname collate "C"`,
    [schema],
  )
  return await Promise.all(tables.map(async (table) => await dumpTable(query, schema, table, migrations)))
}

/**
 * @param {Query} query
 * @param {string} schema
 * @param {Record<string, any>} table
 * @param {string[]} migrations
 */
async function dumpTable(query, schema, table, migrations) {
  const columns = await query(
    `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
       (select quote_ident(l.collname) from pg_collation l join pg_type t on t.oid = a.atttypid
         where l.oid = a.attcollation and a.attcollation <> t.typcollation) as collation,
       pg_get_expr(d.adbin, d.adrelid) as fallback
     from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [table.oid],
  )
  const constraints = await query(
    // Not null is told with the column; from PostgreSQL 18 on it is a constraint as well.
    `select conname as name, pg_get_constraintdef(oid) as text from pg_constraint
     where conrelid = $1 and contype <> 'n' order by contype = 'p' desc, conname collate "C"`,
    [table.oid],
  )
  const remarks = remarksOf(table.name, migrations)
  const lines = [
    ...columns.map(({ name, type, required, collation, fallback }) => ({
      text: [
        name,
        type,
        collation && `collate ${collation}`,
        required && 'not null',
        fallback && `default ${fallback}`,
      ]
        .filter(Boolean)
        .join(' '),
      remark: remarks.get(name),
    })),
    ...constraints.map(({ name, text }) => ({ text: `constraint ${name} ${text}`, remark: undefined })),
  ]
  const body = lines.map(({ text, remark }, index) => {
    const comma = index === lines.length - 1 ? '' : ','
    return `  ${text}${comma}${remark === undefined ? '' : ` -- ${remark}`}`
  })
  const partition = table.partition_key ? ` partition by ${table.partition_key}` : ''
  const options = table.options ? ` with (${table.options})` : ''
  const kind = table.unlogged ? 'unlogged table' : 'table'
  return `create ${kind} ${schema}.${table.name} (\n${body.join('\n')}\n)${partition}${options};`
}

/**
 * The remark beside each column in the newest migration that names the column.
 * @param {string} table
 * @param {string[]} migrations
 */
function remarksOf(table, migrations) {
  /** @type {Map<string, string>} */
  const remarks = new Map()
  const begins = new RegExp(`^(?:create|alter) (?:unlogged )?table (?:if exists )?:schema\\.${table}\\b`)
  for (const text of migrations) {
    let inside = false
    for (const line of text.split('\n')) {
      inside ||= begins.test(line)
      const [, column, remark] = /^\s*(?:add column )?(\w+) .*?\s--\s+(.+)$/.exec(line) ?? []
      if (inside && column !== undefined && remark !== undefined && !remarks.has(column)) {
        remarks.set(column, remark.trim())
      }
      if (line.replace(/--.*/, '').trimEnd().endsWith(';')) inside = false
    }
  }
  return remarks
}

/** @param {Query} query @param {string} schema */
async function dumpIndexes(query, schema) {
  const rows = await query(
    `select pg_get_indexdef(i.indexrelid) as text from pg_index i
     join pg_class c on c.oid = i.indrelid join pg_class x on x.oid = i.indexrelid
     where c.relnamespace = $1::regnamespace and not c.relispartition
       and not exists (select from pg_constraint where conindid = i.indexrelid) order by x.relname collate "C"`,
    [schema],
  )
  return rows.map(
    ({ text }) => `${text.replace(/^CREATE (UNIQUE )?INDEX/, lower).replace(' ON ONLY ', ' ON ')};`,
  )
}

/** @param {Query} query @param {string} schema */
async function dumpFunctions(query, schema) {
  const rows = await query(
    `select pg_get_functiondef(oid) as text from pg_proc where pronamespace = $1::regnamespace
     order by proname collate "C", pg_get_function_identity_arguments(oid) collate "C"`,
    [schema],
  )
  return rows.map(({ text }) => `${text.replace(/^CREATE OR REPLACE FUNCTION/, lower).trimEnd()};`)
}

/** @param {Query} query @param {string} schema @param {string[]} migrations */
async function dumpViews(query, schema, migrations) {
  const rows = await query(
    `select relname as name from pg_class where relnamespace = $1::regnamespace and relkind = 'v' order by 1`,
    [schema],
  )
  return rows.map(({ name }) => {
    const found = migrations
      .map(
        (text) => new RegExp(`^create (?:or replace )?view :schema\\.${name}\\b.*?;$`, 'ms').exec(text)?.[0],
      )
      .find(Boolean)
    if (found === undefined) throw new Error(`no migration creates the view ${name}`)
    return found.replaceAll(':schema', schema)
  })
}

/** @param {string} text */
function lower(text) {
  return text.toLowerCase()
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , url] = process.argv
  if (url === undefined) {
    console.error('usage: node scripts/dump-schema.mjs postgres://user@host/migrated-database')
    process.exit(2)
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    fs.writeFileSync(
      schemaFile,
      await dumpSchema(async (text, params) => (await client.query(text, params)).rows),
    )
  } finally {
    await client.end()
  }
}
