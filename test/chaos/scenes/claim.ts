import assert from 'node:assert/strict'
import type { Database } from '../../../src/driver/operation.ts'
import { BLOCKED_MS, claimOf, type Scene, withinMs } from './stage.ts'

/** Scenes of the statements that give jobs to workers. */
export const claimScenes = {
  twoClaims: {
    promise: 'claim_jobs takes each job once, and never waits for another claim',
    play: async (stage) => {
      const jobs = await stage.enqueue(4)
      const [one, two] = [await stage.worker(), await stage.worker()]
      const taken: string[] = []
      await stage.whileOpen(
        async (db) => void taken.push(...(await stage.claim(one, 2, db)).ids),
        async () => void taken.push(...(await withinMs(BLOCKED_MS, 'a claim', stage.claim(two, 4))).ids),
      )
      taken.push(...(await stage.claim(two, 4)).ids)
      assert.deepEqual(taken.sort(), [...jobs].sort())
    },
  },
  twoFewClaims: {
    promise: 'claim_few_jobs takes each job once, and never waits for another claim',
    play: async (stage) => {
      const jobs = await stage.enqueue(4)
      const [one, two] = [await stage.worker(), await stage.worker()]
      const taken: string[] = []
      await stage.whileOpen(
        async (db) => void taken.push(...(await stage.claimFew(one, 2, db))),
        async () => void taken.push(...(await withinMs(BLOCKED_MS, 'a claim', stage.claimFew(two, 4)))),
      )
      taken.push(...(await stage.claimFew(two, 4)))
      assert.deepEqual(taken.sort(), [...jobs].sort())
    },
  },
  fewOfPausedQueue: {
    promise: 'claim_few_jobs leaves the jobs of a paused queue',
    play: async (stage) => {
      await stage.enqueue(1)
      await stage.sql(`insert into holdfast.queue (name, paused_at) values ('main', now())`)
      assert.deepEqual(await stage.claimFew(await stage.worker(), 1), [])
    },
  },
  noSuspectAmongFew: {
    promise: 'claim_few_jobs leaves jobs that have lost two workers',
    play: async (stage) => {
      const [suspect, other] = await stage.enqueue(2)
      await stage.sql('update holdfast.ready set care = 2, crashes = 2 where job_id = $1', [suspect])
      assert.deepEqual(await stage.claimFew(await stage.worker(), 2), [other])
    },
  },
  pausedQueue: {
    promise: 'claim_jobs leaves the jobs of a paused queue',
    play: async (stage) => {
      await stage.enqueue(1)
      await stage.sql(`insert into holdfast.queue (name, paused_at) values ('main', now())`)
      assert.deepEqual((await stage.claim(await stage.worker(), 1)).ids, [])
    },
  },
  suspectsAlone: {
    promise: 'claim_jobs takes at most one job that has lost two workers',
    play: async (stage) => {
      await stage.enqueue(3)
      await stage.sql('update holdfast.ready set care = 2, crashes = 2')
      assert.equal((await stage.claim(await stage.worker(), 3)).ids.length, 1)
    },
  },
  twoParkedClaims: {
    promise: 'claim_parked_jobs takes each job once, and never waits for another claim',
    play: async (stage) => {
      const jobs = await stage.enqueue(4)
      const parker = await stage.worker()
      const { token } = await stage.claim(parker, 4)
      await stage.settle(parker, token, jobs, { to: 'parked', ended: 'parked' })
      for (const job of jobs) assert.equal(await stage.state(job), 'available')
      const { operation, claimParkedJobs } = stage.library
      const claim = async (workerId: bigint, limit: number, db: Database) => {
        const request = { workerId, queues: ['main'], names: ['scene'], contracts: ['1'], limit }
        const [batch] = await operation.run(db, claimParkedJobs.claimParkedJobs, request)
        return claimOf(batch).ids
      }
      const [one, two] = [await stage.worker(), await stage.worker()]
      const taken: string[] = []
      await stage.whileOpen(
        async (db) => void taken.push(...(await claim(one, 2, db))),
        async () => void taken.push(...(await withinMs(BLOCKED_MS, 'a claim', claim(two, 4, stage.db)))),
      )
      taken.push(...(await claim(two, 4, stage.db)))
      assert.deepEqual(taken.sort(), [...jobs].sort())
    },
  },
  promotionOfTheDue: {
    promise: 'promote_jobs moves what is due, once, and never waits for another promoter',
    play: async (stage) => {
      const due = await stage.enqueue(2, { in: 60_000 })
      const [later = ''] = await stage.enqueue(1, { in: 60_000 })
      await stage.sql(`update holdfast.scheduled set run_at = now() - interval '1 s' where job_id <> $1`, [
        later,
      ])
      const { operation, promoteJobs } = stage.library
      const promote = async (db: Database) =>
        (await operation.runOne(db, promoteJobs.promoteJobs, { limit: 10 })).promoted
      await stage.whileOpen(
        async (db) => assert.equal(await promote(db), 2),
        async () => assert.equal(await withinMs(BLOCKED_MS, 'a promotion', promote(stage.db)), 0),
      )
      assert.deepEqual(
        [await stage.state(due[0] ?? ''), await stage.state(later)],
        ['available', 'scheduled'],
      )
    },
  },
} as const satisfies Readonly<Record<string, Scene>>
