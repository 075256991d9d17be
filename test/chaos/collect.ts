import type { Inspector } from './audit.ts'
import type { Life } from './fleet.ts'
import type { History } from './history.ts'
import { machineMs } from './history-log.ts'
import type { Stage } from './stage.ts'

export interface Drain {
  readonly left: number
  readonly tookMs: number
}

export interface Seen {
  readonly unordered: readonly Life[]
  /** Outcomes as they were seen during the run. */
  readonly samples: ReadonlyMap<string, string>
  readonly drain: Drain
}

/** Puts together all that processes, provider and database know of a run. */
export async function collect(stage: Stage, { unordered, samples, drain }: Seen): Promise<History> {
  const { inspector } = stage
  const orders = await inspector.query<{ key: string }>('select key from orders')
  const [held] = await inspector.query<{ count: number }>(
    'select count(*)::int as count from holdfast.unique_key',
  )
  const [counted] = await inspector.query<{ count: number }>('select sum(n)::int as count from counters')
  return {
    workers: stage.workers.flatMap((slot) => slot.entries()),
    producers: stage.producers.flatMap((slot) => slot.entries()),
    provider: stage.provider.entries(),
    audit: await inspector.audit(),
    jobs: await inspector.jobs(),
    effects: await inspector.effects(),
    commits: await inspector.commits(),
    counted: counted?.count ?? 0,
    checkpoints: await inspector.checkpoints(),
    orders: new Set(orders.map(({ key }) => key)),
    heldKeys: held?.count ?? 0,
    kills: stage.kills,
    outages: stage.outages,
    disturbances: stage.disturbances,
    unordered,
    samples,
    finalSamples: await endsOf(inspector, ''),
    clockOffsetMs: await inspector.clockOffsetMs(machineMs),
    problems: stage.problems,
    drained: drain.left === 0,
    left: drain.left,
  }
}

/** Outcomes by job, as text that tells any change. `rest` is the end of the statement: which of them. */
export async function endsOf(inspector: Inspector, rest: string): Promise<ReadonlyMap<string, string>> {
  const rows = await inspector.query<{ id: string; end: string }>(
    `select job_id::text as id, concat_ws('/', state, token, attempts, finished_at::text, reason) as end from holdfast.outcome ${rest}`,
  )
  return new Map(rows.map(({ id, end }) => [id, end]))
}
