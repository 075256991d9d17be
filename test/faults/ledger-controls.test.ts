import { expect, it } from 'vitest'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { EventHub } from '../../src/base/events.ts'
import type { Operation, Statement } from '../../src/driver/operation.ts'
import { type Database, run, runOne } from '../../src/driver/operation.ts'
import { beginEffect } from '../../src/effects/sql/begin-effect.ts'
import { recordEffect } from '../../src/effects/sql/record-effect.ts'
import { cancel } from '../../src/jobs/cancel.ts'
import { completeInTransaction } from '../../src/jobs/sql/complete-in-transaction.ts'
import type { ClaimedJob } from '../../src/worker/claimed-job.ts'
import { rescueJobs } from '../../src/worker/maintenance/rescuer.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { claim, databaseOf, enqueue, register } from './steps.ts'

/*
 * The statements of the ledger as they are, and with the condition taken out that a promise rests on: what the others
 * tests look for has to happen then, or they would prove nothing.
 */

interface Scene extends AsyncDisposable {
  readonly db: TestDatabase
  readonly database: Database
  readonly ids: {
    readonly workerId: bigint
    readonly token: bigint
    readonly jobId: string
    readonly place: number
  }
  rescue(): Promise<void>
  cancel(): Promise<void>
}

async function scene(): Promise<Scene> {
  const db = await createDatabase()
  const driver = createPgDriver({ url: db.url })
  const database = { ...databaseOf(driver), prepare: false }
  const workerId = await register(database)
  const [jobId = ''] = await enqueue(database, 1)
  const [job] = await claim(database, workerId, 1)
  const { lease, place } = job as ClaimedJob
  return {
    db,
    database,
    ids: { workerId, token: lease.token, jobId, place },
    async rescue() {
      await db.sql(`update holdfast.worker set heartbeat_at = now() - interval '1 hour'`)
      await rescueJobs(driver, database, new EventHub())
    },
    async cancel() {
      await cancel(jobId, 'x', { driver, database })
    },
    async [Symbol.asyncDispose]() {
      await driver.close()
      await db.drop()
    },
  }
}

/** Under a name of its own: what is right may be prepared under the other. */
function brokenOf(statement: Statement, text: string): Statement {
  const name = `${statement.name}_broken`
  return { ...statement, text, name, named: { ...statement.named, name } }
}

/** The operation with something taken out of its statement; fails if it is not there. */
function without<O extends Pick<Operation<never, never>, 'statement'>>(op: O, part: string, instead = ''): O {
  return {
    ...op,
    statement(schema: string) {
      const statement = op.statement(schema)
      expect(statement.text).toContain(part)
      return brokenOf(statement, statement.text.replace(part, instead))
    },
  }
}

const effect = { tenant: '', name: 'x', key: 'k' }
const call = '00000000-0000-4000-8000-000000000001'
const other = '00000000-0000-4000-8000-000000000002'
const begin = { ...effect, call, takes: null, refuted: false }

it('without its lease, a record is accepted from a worker that lost the job', async () => {
  const anyFence = 'from fence where (e.tenant'
  for (const [op, state] of [
    [recordEffect, 'intended'],
    [without(recordEffect, anyFence, 'from (select 1) anybody where (e.tenant'), 'happened'],
  ] as const) {
    await using s = await scene()
    await runOne(s.database, beginEffect, { ...s.ids, ...begin })
    await s.rescue()
    const answer = await runOne(s.database, op, { ...s.ids, ...effect, call, result: '1' })
    expect(answer.live).toBe(false)
    expect(await s.db.sql('select state::text from holdfast.effect')).toEqual([{ state }])
  }
})

it('without its fence, a commit completes a job that was rescued', async () => {
  const completion = { durationMs: 1, late: false, result: null }
  const fence = /from "?holdfast"?\.lease l/
  for (const isBroken of [false, true]) {
    await using s = await scene()
    await s.rescue()
    const statement = completeInTransaction.statement('holdfast')
    const { text } = statement
    expect(text).toMatch(/"lease" l/)
    expect(fence.test(text.replaceAll('"', ''))).toBe(true)
    // Without the lease, the token itself stands for it.
    const broken = text.replace(
      /fence as materialized \([\s\S]*?for share of l\n\s*\)/,
      'fence as materialized (select $2::text::int8 as token, 1::int2 as attempt, false as cancelled where $1::text is not null and $4::text is not null)',
    )
    expect(broken).not.toBe(text)
    const op = {
      ...completeInTransaction,
      statement: () => (isBroken ? brokenOf(statement, broken) : statement),
    }
    await run(s.database, op, { ...s.ids, ...completion })
    expect(await s.db.sql('select from holdfast.outcome')).toHaveLength(isBroken ? 1 : 0)
    expect(await s.db.sql('select from holdfast.ready')).toHaveLength(1)
  }
})

it('without the cancel in its condition, a commit completes a job that was cancelled', async () => {
  const completion = { durationMs: 1, late: false, result: null }
  for (const [op, count] of [
    [completeInTransaction, 0],
    [without(completeInTransaction, 'from fence where not cancelled', 'from fence'), 1],
  ] as const) {
    await using s = await scene()
    await s.cancel()
    expect(await runOne(s.database, op, { ...s.ids, ...completion })).toMatchObject({
      live: true,
      cancelled: true,
    })
    expect(await s.db.sql('select from holdfast.outcome')).toHaveLength(count)
  }
})

it('without the state in its condition, an intent is taken from a call under way', async () => {
  for (const [op, began] of [
    [beginEffect, false],
    [without(beginEffect, "where e.state = 'open' or", "where e.state <> 'happened' or"), true],
  ] as const) {
    await using s = await scene()
    await runOne(s.database, beginEffect, { ...s.ids, ...begin })
    expect(await runOne(s.database, op, { ...s.ids, ...begin, call: other })).toMatchObject({
      live: true,
      began,
    })
  }
})
