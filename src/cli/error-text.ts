import { recordError } from '../base/error-text.ts'
import { HoldfastError } from '../base/errors.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

const USAGE_CODES: readonly string[] = ['INVALID_ARGUMENT', 'COMPOSITION', 'FOLDER_LOCKED', 'SCRIPT_SYNTAX']

/** How the process ends for an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode
  if (isCitty(error)) return exitCodes.usage
  if (!(error instanceof HoldfastError)) return exitCodes.failed
  if (error.code === 'SCHEMA_VERSION') return exitCodes.schema
  return USAGE_CODES.includes(error.code) && error.code !== 'FOLDER_LOCKED'
    ? exitCodes.usage
    : exitCodes.failed
}

/**
 * What is printed of an error: its sentence, and what caused it. Only an error that nobody foresaw, or one of the
 * app file's own, comes with its stack.
 */
export function errorText(error: unknown): string {
  const recorded = recordError(error)
  const foreseen = error instanceof CliError || error instanceof HoldfastError || isCitty(error)
  const head = foreseen ? `error: ${recorded.message}` : `error: ${recorded.stack ?? recorded.message}`
  const causes = (recorded.causes ?? []).map(({ message }) => `  because: ${message}`)
  const cause =
    error instanceof CliError && error.cause !== undefined ? recordError(error.cause).stack : undefined
  return [head, ...causes, ...(cause === undefined ? [] : [cause])].join('\n')
}

function isCitty(error: unknown): boolean {
  return error instanceof Error && error.name === 'CLIError'
}
