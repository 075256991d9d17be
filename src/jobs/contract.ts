import { createHash } from 'node:crypto'
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'
import type { EffectName } from '../effects/effect-name.ts'

const MAX_DEPTH = 12

/** What producers and workers of a job have to agree on. */
export interface ContractFacts {
  readonly name: string
  readonly queue: string
  readonly input: StandardSchemaV1
  readonly result: StandardSchemaV1 | undefined
  readonly effects: readonly EffectName[]
}

/**
 * Fingerprint of what a producer and a worker have to agree on: the job's name and queue, the shapes of its input and
 * result, as far as the schema library lets them be read, and its effects in any order. Two releases with the same
 * declaration give the same fingerprint; a different one says only that something may differ.
 *
 * It is for seeing that: in the manifest, on stored jobs and on registered workers. It never decides whether a job may
 * run, which only the input's schema does; a job that a schema refused waits until a worker has another fingerprint, and
 * is then checked again. So a changed queue or effect costs such a job one more look, and no other job anything.
 */
export function contractOf({ name, queue, input, result, effects }: ContractFacts): string {
  const hash = createHash('sha256').update(`${name}\n${queue}\n${effects.toSorted().join(',')}\n`)
  for (const schema of [input, result]) {
    if (schema !== undefined) hash.update(`${schema['~standard'].vendor}\n${textOf(schema)}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}

function textOf(schema: StandardSchemaV1): string {
  return jsonSchemaOf(schema) ?? shapeOf(schema, MAX_DEPTH, new Set())
}

/** The JSON Schema of what is given to it, where the library has one; refinements by functions are in none. */
function jsonSchemaOf(schema: StandardSchemaV1): string | undefined {
  const standard = schema['~standard'] as Partial<StandardJSONSchemaV1.Props>
  try {
    const given = standard.jsonSchema?.input({ target: 'draft-2020-12' })
    return given === undefined ? undefined : shapeOf(given, MAX_DEPTH, new Set())
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
