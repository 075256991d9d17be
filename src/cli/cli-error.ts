import { exitCodes } from './exit-codes.ts'

/** Something the command refuses or cannot do: one sentence with a next step, and how the process ends. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: number

  constructor(message: string, options: ErrorOptions & { readonly exitCode?: number } = {}) {
    super(message, options)
    this.exitCode = options.exitCode ?? exitCodes.failed
  }
}

/** The command line cannot be right. */
export function usageError(message: string, options: ErrorOptions = {}): CliError {
  return new CliError(message, { ...options, exitCode: exitCodes.usage })
}
