import { type JobDetails, showJob } from '../../admin/show-job.ts'
import { usageError } from '../cli-error.ts'
import { command } from '../command.ts'
import { jobLines } from '../job-lines.ts'
import { openDatabase } from '../open-database.ts'
import { RawJson } from '../output.ts'

/** Everything about one job: where it is and why, its timeline, its errors, its input digit for digit. */
export const jobsShow = command({
  name: 'jobs show',
  description: 'Show everything about one job, and why it waits',
  args: {},
  list: { of: 'the id of a job' },
  async run({ args, list, output }) {
    const [id, further] = list
    if (id === undefined || further !== undefined) throw usageError('give the id of one job')
    await using opened = await openDatabase(args)
    const details = await showJob(opened.database, id)
    const { input, context, result, error, now: _, isLeaseOver: __, seq: ___, ...facts } = details.facts
    const raw = (text: string | null) => (text === null ? null : new RawJson(text))
    const value = {
      ...facts,
      explanation: details.explanation,
      input: raw(input),
      context: raw(context),
      result: raw(result),
      error: raw(error),
      effects: details.effects,
      checkpoint: raw(details.left?.value ?? null),
      progress: progressOf(details),
      history: details.attempts.map((attempt) => ({ ...attempt, error: raw(attempt.error) })),
    }
    output.print(value, () => jobLines(details, output))
  },
})

function progressOf({ left }: JobDetails) {
  if (left === undefined || left.fraction === null) return null
  return { fraction: left.fraction, note: left.note, updatedAt: left.progressAt }
}
