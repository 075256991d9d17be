import { z } from 'zod'
import type { Sql } from './database.ts'

/** What Holdfast's own tables say once the run is over. */
export interface Facts {
  readonly jobs: ReadonlyMap<string, JobFact>
  /** Attempts at a job whose worker was lost, by job: each is a rescue. */
  readonly lost: ReadonlyMap<string, LostAttempts>
  readonly effects: EffectFacts
}

export interface JobFact {
  readonly state: string
  readonly attempts: number
}

export interface LostAttempts {
  readonly tokens: ReadonlySet<string>
  readonly numbers: ReadonlySet<number>
}

/** What the ledger says. */
export interface EffectFacts {
  readonly happened: number
  /** Of which nobody knows whether they happened. */
  readonly inDoubt: number
}

const jobRow = z.object({ id: z.string(), state: z.string(), attempts: z.number() })
const lostRow = z.object({ id: z.string(), tokens: z.array(z.string()), numbers: z.array(z.number()) })
const effectsRow = z.object({ happened: z.number(), inDoubt: z.number() })

export async function readFacts(database: Sql): Promise<Facts> {
  const jobs = await database.query('select id::text as id, state, attempts from holdfast.jobs')
  const lost = await database.query(`
    select job_id::text as id, array_agg(token::text) as tokens, array_agg(attempt::int) as numbers
    from holdfast.attempt where ended = 'worker-lost' group by job_id`)
  const effects = await database.query(`
    select count(*) filter (where state = 'happened')::int as happened,
      count(*) filter (where state in ('intended', 'uncertain'))::int as "inDoubt"
    from holdfast.effect`)
  return {
    jobs: new Map(
      z
        .array(jobRow)
        .parse(jobs.rows)
        .map((job) => [job.id, job]),
    ),
    lost: new Map(
      z
        .array(lostRow)
        .parse(lost.rows)
        .map(({ id, tokens, numbers }) => [id, { tokens: new Set(tokens), numbers: new Set(numbers) }]),
    ),
    effects: effectsRow.parse(effects.rows[0]),
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
