import assert from 'node:assert/strict'
import { idsOf, type Scene, settleRequest } from './stage.ts'

/** Scenes of the statements that end attempts: settles, and the cancel that meets one. */
export const settleScenes = {
  staleCompletion: {
    promise: 'settle_completed refuses a worker whose lease was rescued',
    play: async (stage) => {
      const { jobs, dead, old } = await stage.takenOver()
      assert.deepEqual([...(await stage.complete(dead, old.token, jobs))].sort(), [...jobs].sort())
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  staleCompletionWithClaim: {
    promise: 'settle_and_claim refuses a worker whose lease was rescued, and claims all the same',
    play: async (stage) => {
      const { jobs, dead, old } = await stage.takenOver()
      const [other] = await stage.enqueue(1)
      const { operation, settleCompleted } = stage.library
      const request = { ...settleRequest(dead, old.token, jobs), ...stage.claimRequest(dead, 5) }
      const answer = await operation.runOne(stage.db, settleCompleted.settleAndClaim, request)
      assert.deepEqual([...idsOf(answer.refused)].sort(), [...jobs].sort())
      assert.deepEqual(idsOf(answer.ids), [other])
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  staleFailure: {
    promise: 'settle_attempts refuses a worker whose lease was rescued',
    play: async (stage) => {
      const { jobs, dead, old } = await stage.takenOver()
      const refused = await stage.settle(dead, old.token, jobs, {
        to: 'scheduled',
        ended: 'failed',
        delay: 1000,
      })
      assert.deepEqual([...refused].sort(), [...jobs].sort())
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  releasedCompletion: {
    promise: 'settle_completed refuses a lease that was given back, which leaves no row but its absence',
    play: async (stage) => {
      const { jobs, worker, token } = await stage.givenBack()
      assert.deepEqual([...(await stage.complete(worker, token, jobs))].sort(), [...jobs].sort())
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  releasedFailure: {
    promise: 'settle_attempts refuses a lease that was given back',
    play: async (stage) => {
      const { jobs, worker, token } = await stage.givenBack()
      const refused = await stage.settle(worker, token, jobs, {
        to: 'scheduled',
        ended: 'failed',
        delay: 1000,
      })
      assert.deepEqual([...refused].sort(), [...jobs].sort())
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  jobOfNoLease: {
    promise: 'settle_completed refuses a job that the named lease does not hold',
    play: async (stage) => {
      await stage.enqueue(1)
      const worker = await stage.worker()
      const { token, ids } = await stage.claim(worker, 1)
      const [waiting = ''] = await stage.enqueue(1)
      assert.deepEqual(await stage.complete(worker, token, [waiting, ...ids], { places: [1, 1] }), [waiting])
      assert.equal(await stage.state(waiting), 'available')
    },
  },
  failedJobOfNoLease: {
    promise: 'settle_attempts refuses a job that the named lease does not hold',
    play: async (stage) => {
      await stage.enqueue(1)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 1)
      const [waiting = ''] = await stage.enqueue(1)
      assert.deepEqual(
        await stage.settle(worker, token, [waiting], { to: 'scheduled', ended: 'failed', delay: 1 }),
        [waiting],
      )
      assert.equal(await stage.state(waiting), 'available')
    },
  },
  leaseOfAnother: {
    promise: 'a worker settles nothing under the lease of another',
    play: async (stage) => {
      const jobs = await stage.enqueue(1)
      const owner = await stage.worker()
      const other = await stage.worker()
      const { token } = await stage.claim(owner, 1)
      assert.deepEqual(await stage.complete(other, token, jobs), jobs)
      assert.equal(await stage.state(jobs[0] ?? ''), 'executing')
    },
  },
  handedBackThenCompleted: {
    promise: 'settle_completed refuses a job that was handed back under the same lease',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      await stage.settle(worker, token, [first], { to: 'ready', ended: 'handed-back' })
      assert.deepEqual(await stage.complete(worker, token, [first]), [first])
      assert.equal(await stage.state(first), 'available')
    },
  },
  failureTwice: {
    promise: 'settle_attempts records one end of an attempt, however often it is sent',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      const failure = { to: 'scheduled', ended: 'failed', delay: 60_000 }
      await stage.settle(worker, token, [first], failure)
      await stage.settle(worker, token, [first], failure)
      assert.equal(await stage.state(first), 'retryable')
    },
  },
  failureAfterCompletion: {
    promise: 'settle_attempts changes nothing of a job that has ended',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      await stage.complete(worker, token, [first])
      await stage.settle(worker, token, [first], { to: 'scheduled', ended: 'failed', delay: 60_000 })
      assert.equal(await stage.state(first), 'completed')
    },
  },
  cancelledThenRepeated: {
    promise:
      'settle_attempts says that a job was cancelled also when its answer was lost and it is sent again',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      const { cancel } = stage.library.cancel
      await cancel(first, undefined, { driver: stage.driver, database: stage.db })
      await stage.complete(worker, token, [first])
      assert.equal(await stage.state(first), 'cancelled')
      const { operation, settleAttempts } = stage.library
      const items = JSON.stringify([{ token: String(token), job: first, ms: 1, to: 'completed' }])
      const again = { workerId: worker, tokens: [token], items, keep: 20 }
      const answer = await operation.runOne(stage.db, settleAttempts.settleAttempts, again)
      assert.deepEqual([idsOf(answer.refused), idsOf(answer.cancelled)], [[], [first]])
    },
  },
  cancelDuringSettle: {
    promise: 'a cancel that meets a settle waits for it, and does not call a completed job cancelled',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      const { cancel } = stage.library.cancel
      let answer: ReturnType<typeof cancel> | undefined
      await stage.whileOpen(
        async (db) => await stage.complete(worker, token, [first], { db }),
        async () => {
          answer = cancel(first, undefined, { driver: stage.driver, database: stage.db })
          await stage.waiting()
        },
      )
      assert.deepEqual(await answer, { status: 'finished', state: 'completed' })
    },
  },
  closingOfTheFinished: {
    promise: 'close_leases ends a lease of this worker of which nothing is left, and no other',
    play: async (stage) => {
      await stage.enqueue(6)
      const worker = await stage.worker()
      const other = await stage.worker()
      const finished = await stage.claim(worker, 2)
      const executing = await stage.claim(worker, 2)
      const others = await stage.claim(other, 2)
      for (const { token, ids } of [finished, { ...executing, ids: executing.ids.slice(0, 1) }]) {
        for (const [i, id] of ids.entries()) {
          await stage.complete(worker, token, [id], { places: [i + 1] })
        }
      }
      for (const [i, id] of others.ids.entries()) {
        await stage.complete(other, others.token, [id], { places: [i + 1] })
      }
      const tokens = [finished, executing, others].map(({ token }) => token)
      const { operation, closeLeases } = stage.library
      const { left } = await operation.runOne(stage.db, closeLeases.closeLeases, { workerId: worker, tokens })
      assert.deepEqual(left, [String(executing.token)])
      assert.deepEqual(
        (await stage.sql('select token from holdfast.lease order by token')).map(({ token }) =>
          String(token),
        ),
        [executing.token, others.token].map(String),
      )
      assert.equal(await stage.state(executing.ids[1] ?? ''), 'executing')
    },
  },
} as const satisfies Readonly<Record<string, Scene>>
