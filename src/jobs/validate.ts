import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type InputIssue, InvalidArgumentError, InvalidInputError } from '../base/errors.ts'

export type Validation<T = unknown> =
  | { readonly value: T; readonly issues: undefined }
  | { readonly value?: undefined; readonly issues: readonly InputIssue[] }

/**
 * Requires a Standard Schema.
 *
 * @throws {InvalidArgumentError} It is none; names the field.
 */
export function requireSchema(field: string, schema: unknown): void {
  const standard = (schema as StandardSchemaV1 | null | undefined)?.['~standard']
  if (standard?.version !== 1 || typeof standard.validate !== 'function') {
    throw new InvalidArgumentError({
      field,
      problem: 'must be a Standard Schema, such as one made with zod, valibot or arktype',
    })
  }
}

/** Runs a Standard Schema; a promise only if the schema answers with one. A schema that throws is an issue. */
export function validate(schema: StandardSchemaV1, value: unknown): Validation | Promise<Validation> {
  try {
    const answer = schema['~standard'].validate(value)
    return answer instanceof Promise ? answer.then(toValidation, toIssue) : toValidation(answer)
  } catch (error) {
    return toIssue(error)
  }
}

/**
 * The result of a job as its schema gives it; as it is, without a schema or a result.
 *
 * @throws {InvalidInputError} The schema refuses it.
 */
export async function validateResult(
  job: { readonly name: string; readonly result?: StandardSchemaV1 | undefined },
  value: unknown,
): Promise<unknown> {
  if (job.result === undefined || value === undefined) return value
  const valid = await validate(job.result, value)
  if (valid.issues !== undefined)
    throw new InvalidInputError({ job: `${job.name} (result)`, issues: valid.issues })
  return valid.value
}

function toValidation(answer: StandardSchemaV1.Result<unknown>): Validation {
  if (answer.issues === undefined) return { value: answer.value, issues: undefined }
  return {
    issues: answer.issues.map((issue) => ({ path: pathOf(issue.path), message: issue.message })),
  }
}

function toIssue(error: unknown): Validation {
  return { issues: [{ path: '', message: error instanceof Error ? error.message : 'the schema threw' }] }
}

function pathOf(path: StandardSchemaV1.Issue['path']): string {
  return (path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
}
