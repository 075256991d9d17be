import assert from 'node:assert/strict'
import { BLOCKED_MS, type Scene, withinMs } from './stage.ts'

/** Scenes of the statements that decide who lives, and take back what the dead held. */
export const rescueScenes = {
  rescueOfTheSettled: {
    promise: 'requeue_lost_leases leaves what was settled under the lost lease',
    play: async (stage) => {
      const [done = '', back = '', lost = ''] = await stage.enqueue(3)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 3)
      await stage.complete(worker, token, [done])
      await stage.settle(worker, token, [back], { to: 'scheduled', ended: 'failed', delay: 60_000 })
      await stage.silence(worker)
      assert.deepEqual(await stage.rescue(), [lost])
      assert.deepEqual([await stage.state(done), await stage.state(back)], ['completed', 'retryable'])
      assert.equal(await stage.state(lost), 'available')
    },
  },
  rescueOnce: {
    promise: 'requeue_lost_leases closes the leases it took, so that they are rescued once',
    play: async (stage) => {
      const { jobs, now } = await stage.takenOver()
      assert.deepEqual(await stage.sql('select token::text from holdfast.lease'), [
        { token: String(now.token) },
      ])
      assert.deepEqual(await stage.rescue(), [])
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  rescueOfTheRenewed: {
    promise: 'lock_lost_leases leaves a worker that renews at this moment',
    play: async (stage) => {
      await stage.enqueue(1)
      const worker = await stage.worker()
      await stage.claim(worker, 1)
      await stage.silence(worker)
      const { operation, renewLeases } = stage.library
      await stage.whileOpen(
        async (db) => await operation.runOne(db, renewLeases.renewLeases, { workerId: worker }),
        async () => assert.deepEqual(await withinMs(BLOCKED_MS, 'a rescue', stage.rescue()), []),
      )
      assert.deepEqual(await stage.rescue(), [])
    },
  },
  rescueOfTheLiving: {
    promise: 'lock_lost_leases leaves workers that renewed in time',
    play: async (stage) => {
      await stage.enqueue(1)
      const worker = await stage.worker()
      await stage.claim(worker, 1)
      assert.deepEqual(await stage.rescue(), [])
    },
  },
  rescueOfOrphans: {
    promise: 'lock_lost_leases takes leases whose worker is gone',
    play: async (stage) => {
      const jobs = await stage.enqueue(1)
      const worker = await stage.worker()
      await stage.claim(worker, 1)
      await stage.sql('delete from holdfast.worker')
      assert.deepEqual(await stage.rescue(), jobs)
    },
  },
  renewalAfterDeath: {
    promise: 'renew_leases tells a worker that was declared dead, and renews its own life only',
    play: async (stage) => {
      const { dead, heir } = await stage.takenOver()
      const { operation, renewLeases } = stage.library
      await stage.silence(heir)
      assert.deepEqual(await operation.run(stage.db, renewLeases.renewLeases, { workerId: dead }), [])
      assert.equal((await stage.rescue()).length, 2)
    },
  },
  releaseOfTheUnknown: {
    promise:
      'release_unknown_leases gives back what the worker does not know, of this worker alone, and nothing that is settled',
    play: async (stage) => {
      await stage.enqueue(3)
      const worker = await stage.worker()
      const other = await stage.worker()
      const known = await stage.claim(worker, 1)
      const unknown = await stage.claim(worker, 1)
      const others = await stage.claim(other, 1)
      const { operation, releaseUnknownLeases } = stage.library
      const request = { workerId: worker, known: [known.token] }
      assert.equal(
        (await operation.runOne(stage.db, releaseUnknownLeases.releaseUnknownLeases, request)).released,
        1,
      )
      assert.equal(await stage.state(known.ids[0] ?? ''), 'executing')
      assert.equal(await stage.state(others.ids[0] ?? ''), 'executing')
      assert.equal(await stage.state(unknown.ids[0] ?? ''), 'available')
      assert.equal((await stage.claim(worker, 1)).ids[0], unknown.ids[0])
    },
  },
  releaseOfTheSettled: {
    promise: 'release_unknown_leases leaves what was settled under the lease',
    play: async (stage) => {
      const [done = '', failed = '', held = ''] = await stage.enqueue(3)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 3)
      await stage.complete(worker, token, [done])
      await stage.settle(worker, token, [failed], { to: 'scheduled', ended: 'failed', delay: 60_000 })
      const { operation, releaseUnknownLeases } = stage.library
      await operation.runOne(stage.db, releaseUnknownLeases.releaseUnknownLeases, {
        workerId: worker,
        known: [],
      })
      const states = [await stage.state(done), await stage.state(failed), await stage.state(held)]
      assert.deepEqual(states, ['completed', 'retryable', 'available'])
    },
  },
  removalWithLeases: {
    promise: 'remove_worker keeps the row of a worker that still holds a lease, for the next rescue',
    play: async (stage) => {
      const jobs = await stage.enqueue(1)
      const [worker, other] = [await stage.worker(), await stage.worker()]
      await stage.claim(worker, 1)
      const { operation, removeWorker } = stage.library
      const { leases } = await operation.runOne(stage.db, removeWorker.removeWorker, { workerId: worker })
      assert.equal(leases, 1)
      const rows = await stage.sql(
        "select id::text, heartbeat_at < now() - interval '1 day' as stale from holdfast.worker order by id",
      )
      assert.deepEqual(rows, [
        { id: String(worker), stale: true },
        { id: String(other), stale: false },
      ])
      assert.deepEqual(await stage.rescue(), jobs)
    },
  },
} as const satisfies Readonly<Record<string, Scene>>
