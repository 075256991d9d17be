import { createHash } from 'node:crypto'
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'

const MAX_DEPTH = 12

/**
 * Fingerprint of what a producer and a worker have to agree on: the job's name and the shape of its input, as
 * far as the schema library lets it be read. Two releases with the same schema text give the same fingerprint;
 * a different one says only that the shapes may differ.
 */
export function contractOf(name: string, input: StandardSchemaV1): string {
  const hash = createHash('sha256').update(`${name}\n${input['~standard'].vendor}\n`)
  hash.update(jsonSchemaOf(input) ?? shapeOf(input, MAX_DEPTH, new Set()))
  return hash.digest('hex').slice(0, 16)
}

/** The input's JSON Schema, where the library gives one; refinements by functions are in none. */
function jsonSchemaOf(input: StandardSchemaV1): string | undefined {
  const standard = input['~standard'] as Partial<StandardJSONSchemaV1.Props>
  try {
    const schema = standard.jsonSchema?.input({ target: 'draft-2020-12' })
    return schema === undefined ? undefined : shapeOf(schema, MAX_DEPTH, new Set())
  } catch {
    // A schema that cannot be written as JSON Schema is described by its own parts.
    return undefined
  }
}

/** Schema objects are plain trees in all three libraries; functions and cycles are named, not followed. */
function shapeOf(value: unknown, depth: number, seen: Set<object>): string {
  if (typeof value === 'function') return 'function'
  if (typeof value !== 'object' || value === null) return String(value)
  if (depth === 0 || seen.has(value)) return '…'
  seen.add(value)
  if (value instanceof RegExp) return String(value)
  if (Array.isArray(value)) return `[${value.map((item) => shapeOf(item, depth - 1, seen)).join(',')}]`
  const members = Object.keys(value)
    .filter((key) => key !== '~standard' && !key.startsWith('$') && key !== 'parent')
    .sort()
    .map((key) => `${key}:${shapeOf((value as Record<string, unknown>)[key], depth - 1, seen)}`)
  return `{${members.join(',')}}`
}
