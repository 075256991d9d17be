import { z } from 'zod'
import type { Sql } from './database.ts'

/** What Holdfast's own tables say once the run is over. */
export interface Facts {
  readonly jobs: ReadonlyMap<string, JobFact>
  /** Fencing tokens under which a worker was lost while it ran the job, by job: each is a rescue. */
  readonly lostTokens: ReadonlyMap<string, ReadonlySet<string>>
}

export interface JobFact {
  readonly state: string
  readonly attempts: number
}

const jobRow = z.object({ id: z.string(), state: z.string(), attempts: z.number() })
const lostRow = z.object({ id: z.string(), tokens: z.array(z.string()) })

export async function readFacts(database: Sql): Promise<Facts> {
  const jobs = await database.query('select id::text as id, state, attempts from holdfast.jobs')
  const lost = await database.query(`
    select job_id::text as id, array_agg(token::text) as tokens
    from holdfast.attempt where ended = 'worker-lost' group by job_id`)
  return {
    jobs: new Map(
      z
        .array(jobRow)
        .parse(jobs.rows)
        .map((job) => [job.id, job]),
    ),
    lostTokens: new Map(
      z
        .array(lostRow)
        .parse(lost.rows)
        .map(({ id, tokens }) => [id, new Set(tokens)]),
    ),
  }
}

/** Counts for the progress display. */
export interface Counts {
  /** Jobs that are not yet completed, cancelled or discarded. */
  readonly live: number
  readonly completed: number
  readonly rescues: number
}

const countsRow = z.object({ live: z.number(), completed: z.number(), rescues: z.number() })

export async function readCounts(database: Sql): Promise<Counts> {
  const { rows } = await database.query(`
    select
      count(*) filter (where state not in ('completed', 'cancelled', 'discarded'))::int as live,
      count(*) filter (where state = 'completed')::int as completed,
      (select count(*)::int from holdfast.attempt where ended = 'worker-lost') as rescues
    from holdfast.jobs`)
  return countsRow.parse(rows[0])
}

export async function isCompleted(database: Sql, jobId: string): Promise<boolean> {
  const { rows } = await database.query(
    `select from holdfast.jobs where id = $1::text::bigint and state = 'completed'`,
    [jobId],
  )
  return rows.length === 1
}
