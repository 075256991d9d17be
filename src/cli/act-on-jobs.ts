import { CliError } from './cli-error.ts'
import { errorText } from './error-text.ts'
import type { Output } from './output.ts'

/** What became of one of the jobs that a command was given. */
export interface Act {
  readonly id: string
  readonly done: boolean
  readonly message: string
}

/**
 * Does something to each job in turn, and tells of each what came of it. One that is refused does not keep the
 * others; but a database that cannot be reached, or a wrong option, ends it.
 *
 * @throws {CliError} At least one was refused; all have been tried.
 */
export async function actOnJobs(
  output: Output,
  ids: readonly string[],
  act: (id: string) => Promise<Omit<Act, 'id'>>,
): Promise<void> {
  const acts: Act[] = []
  for (const id of ids) {
    try {
      acts.push({ id, ...(await act(id)) })
    } catch (error) {
      if (!isAboutTheJob(error)) throw error
      acts.push({ id, done: false, message: errorText(error).replace(/^error: /, '') })
    }
  }
  const refused = acts.filter(({ done }) => !done)
  output.print(acts, () => acts.map(({ id, message }) => `${id}: ${message}`))
  if (refused.length === 0) return
  const sentence =
    acts.length === 1
      ? `job ${refused[0]?.id}: ${refused[0]?.message}`
      : `${refused.length} of ${acts.length} jobs were left as they are: ${refused.map(({ id }) => id).join(', ')}`
  throw new CliError(sentence)
}

function isAboutTheJob(error: unknown): boolean {
  const code = error instanceof Error ? (error as { readonly code?: unknown }).code : undefined
  return code === 'JOB_NOT_FOUND' || code === 'UNIQUE_CONFLICT' || code === 'EFFECT_UNDECIDED'
}
