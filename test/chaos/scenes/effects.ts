import assert from 'node:assert/strict'
import { type Attempt, begun, overtaken } from './attempt.ts'
import type { Scene, SceneStage } from './stage.ts'

const EFFECT = { tenant: '', name: 'send:scene', key: 'scene' } as const
const FIRST = '00000000-0000-4000-8000-000000000001'
const SECOND = '00000000-0000-4000-8000-000000000002'
const LATE = { to: 'scheduled', ended: 'failed', delay: 60_000 } as const

async function begin(stage: SceneStage, attempt: Attempt, call: string, takes: string | null = null) {
  const { operation, beginEffect } = stage.library
  const request = { ...attempt, ...EFFECT, call, takes, refuted: false }
  return await operation.runOne(stage.db, beginEffect.beginEffect, request)
}

async function record(stage: SceneStage, attempt: Attempt, call: string, result = '1') {
  const { operation, recordEffect } = stage.library
  const request = { ...attempt, ...EFFECT, call, result }
  return await operation.runOne(stage.db, recordEffect.recordEffect, request)
}

async function end(stage: SceneStage, attempt: Attempt, call: string, notHappened: boolean) {
  const { operation, endEffect } = stage.library
  const request = { ...attempt, ...EFFECT, call, notHappened, error: null }
  return await operation.runOne(stage.db, endEffect.endEffect, request)
}

async function isHeld(stage: SceneStage): Promise<boolean | undefined> {
  const { operation, findEffect } = stage.library
  return (await operation.run(stage.db, findEffect.findEffect, EFFECT))[0]?.held
}

/** State and newest call, such as `intended 1`; `none` if the effect was never intended. */
async function effect(stage: SceneStage): Promise<string> {
  const [row] = await stage.sql('select state::text, call::text from holdfast.effect')
  return row === undefined ? 'none' : `${String(row['state'])} ${String(row['call']).at(-1)}`
}

/** An attempt that has intended the effect under {@link FIRST}. */
async function intended(stage: SceneStage): Promise<Attempt> {
  const attempt = await begun(stage)
  assert.equal((await begin(stage, attempt, FIRST)).began, true)
  return attempt
}

/** Scenes of the ledger. */
export const effectScenes = {
  staleBegin: {
    promise: 'begin_effect refuses an attempt whose lease was rescued',
    play: async (stage) => {
      const { stale } = await overtaken(stage)
      assert.equal((await begin(stage, stale, FIRST)).live, false)
      assert.equal(await effect(stage), 'none')
    },
  },
  beginOfTheCancelled: {
    promise: 'begin_effect intends nothing for a job that was cancelled',
    play: async (stage) => {
      const attempt = await begun(stage)
      const { cancel } = stage.library.cancel
      await cancel(attempt.jobId, undefined, { driver: stage.driver, database: stage.db })
      assert.equal((await begin(stage, attempt, FIRST)).cancelled, true)
      assert.equal(await effect(stage), 'none')
    },
  },
  beginInDoubt: {
    promise: 'begin_effect leaves an effect in doubt to those who have decided about that very call',
    play: async (stage) => {
      const attempt = await intended(stage)
      await end(stage, attempt, FIRST, false)
      assert.equal((await begin(stage, attempt, SECOND)).began, false)
      assert.equal((await begin(stage, attempt, SECOND, SECOND)).began, false)
      assert.equal(await effect(stage), 'uncertain 1')
      assert.equal((await begin(stage, attempt, SECOND, FIRST)).began, true)
    },
  },
  beginOfTheHappened: {
    promise: 'begin_effect never calls again what has happened',
    play: async (stage) => {
      const attempt = await intended(stage)
      await record(stage, attempt, FIRST)
      assert.equal((await begin(stage, attempt, SECOND)).began, false)
      assert.equal(await effect(stage), 'happened 1')
    },
  },
  takingOverTheHappened: {
    promise: 'begin_effect refuses to take over a call that was recorded meanwhile',
    play: async (stage) => {
      const attempt = await intended(stage)
      await record(stage, attempt, FIRST)
      assert.equal((await begin(stage, attempt, SECOND, FIRST)).began, false)
      assert.equal(await effect(stage), 'happened 1')
    },
  },
  staleRecord: {
    promise: 'record_effect refuses an attempt whose lease was rescued',
    play: async (stage) => {
      const { stale, live } = await overtaken(stage)
      await begin(stage, live, FIRST)
      assert.equal((await record(stage, stale, FIRST)).live, false)
      assert.equal(await effect(stage), 'intended 1')
    },
  },
  recordOfAnOlderCall: {
    promise: 'record_effect leaves the newer call that took the effect over',
    play: async (stage) => {
      const attempt = await intended(stage)
      await begin(stage, attempt, SECOND, FIRST)
      assert.equal((await record(stage, attempt, FIRST)).recorded, false)
      assert.equal(await effect(stage), 'intended 2')
    },
  },
  recordTwice: {
    promise: 'record_effect leaves what was recorded first',
    play: async (stage) => {
      const attempt = await intended(stage)
      await record(stage, attempt, FIRST, '1')
      assert.equal((await record(stage, attempt, FIRST, '2')).recorded, false)
      assert.deepEqual(await stage.sql('select result from holdfast.effect'), [{ result: 1 }])
    },
  },
  staleEnd: {
    promise: 'end_effect refuses an attempt whose lease was rescued',
    play: async (stage) => {
      const { stale, live } = await overtaken(stage)
      await begin(stage, live, FIRST)
      await end(stage, stale, FIRST, true)
      assert.equal(await effect(stage), 'intended 1')
    },
  },
  endOfAnOlderCall: {
    promise: 'end_effect leaves the newer call that took the effect over',
    play: async (stage) => {
      const attempt = await intended(stage)
      await begin(stage, attempt, SECOND, FIRST)
      await end(stage, attempt, FIRST, true)
      assert.equal(await effect(stage), 'intended 2')
    },
  },
  endOfTheHappened: {
    promise: 'end_effect leaves an effect that is recorded',
    play: async (stage) => {
      const attempt = await intended(stage)
      await record(stage, attempt, FIRST)
      await end(stage, attempt, FIRST, true)
      assert.equal(await effect(stage), 'happened 1')
    },
  },
  endAfterADoubt: {
    promise: 'a call that certainly did not happen leaves the doubt about the one before',
    play: async (stage) => {
      const attempt = await intended(stage)
      await begin(stage, attempt, SECOND, FIRST)
      await end(stage, attempt, SECOND, true)
      assert.equal(await effect(stage), 'uncertain 2')
    },
  },
  callUnderWay: {
    promise: 'a call counts as under way while its attempt lives, and no longer',
    play: async (stage) => {
      const ended = await intended(stage)
      assert.equal(await isHeld(stage), true)
      await stage.settle(ended.workerId, ended.token, [ended.jobId], LATE)
      assert.equal(await isHeld(stage), false)
      await stage.sql('delete from holdfast.effect')
      // A lease that was given back as unknown leaves no row but its absence.
      const { workerId } = await intended(stage)
      const { operation, releaseUnknownLeases } = stage.library
      await operation.runOne(stage.db, releaseUnknownLeases.releaseUnknownLeases, { workerId, known: [] })
      assert.equal(await isHeld(stage), false)
    },
  },
  askOfTheDecided: {
    promise: 'ask_effect asks nobody about what is known',
    play: async (stage) => {
      const attempt = await intended(stage)
      await record(stage, attempt, FIRST)
      const { operation, askEffect } = stage.library
      const request = { ...attempt, ...EFFECT, call: FIRST }
      assert.equal((await operation.runOne(stage.db, askEffect.askEffect, request)).asked, false)
    },
  },
  askOfAnotherCall: {
    promise: 'ask_effect asks about the call that was in doubt, not about one that took over',
    play: async (stage) => {
      const attempt = await intended(stage)
      await begin(stage, attempt, SECOND, FIRST)
      const { operation, askEffect } = stage.library
      const request = { ...attempt, ...EFFECT, call: FIRST }
      assert.equal((await operation.runOne(stage.db, askEffect.askEffect, request)).asked, false)
    },
  },
  staleAsk: {
    promise: 'ask_effect asks nothing for an attempt whose lease was rescued',
    play: async (stage) => {
      const { stale, live } = await overtaken(stage)
      await begin(stage, live, FIRST)
      const { operation, askEffect } = stage.library
      await operation.runOne(stage.db, askEffect.askEffect, { ...stale, ...EFFECT, call: FIRST })
      assert.deepEqual(await stage.sql('select from holdfast.effect_question'), [])
    },
  },
  enteredOnce: {
    promise: 'enter_effect lets one transaction do an effect, and waits for it',
    play: async (stage) => {
      const { operation, enterEffect } = stage.library
      const enter = (call: string) => ({ ...EFFECT, call })
      let second: Promise<{ readonly entered: boolean }> | undefined
      await stage.whileOpen(
        async (db) => {
          await operation.runOne(db, enterEffect.enterEffect, enter(FIRST))
          await operation.runOne(db, enterEffect.setEffectResult, { ...enter(FIRST), result: '1' })
        },
        async () => {
          second = operation.runOne(stage.db, enterEffect.enterEffect, enter(SECOND))
          await stage.waiting()
        },
      )
      assert.equal((await second)?.entered, false)
      assert.equal(await effect(stage), 'happened 1')
    },
  },
  resultOfAnother: {
    promise: 'set_effect_result and leave_effect touch only what their own transaction entered',
    play: async (stage) => {
      const { operation, enterEffect } = stage.library
      await operation.runOne(stage.db, enterEffect.enterEffect, { ...EFFECT, call: FIRST })
      const other = { ...EFFECT, call: SECOND }
      const { set } = await operation.runOne(stage.db, enterEffect.setEffectResult, { ...other, result: '2' })
      const { left } = await operation.runOne(stage.db, enterEffect.leaveEffect, other)
      assert.deepEqual([set, left, await effect(stage)], [false, false, 'intended 1'])
    },
  },
  pruneKeepsDoubts: {
    promise: 'prune_effects keeps what nobody knows, however old',
    play: async (stage) => {
      const attempt = await intended(stage)
      await end(stage, attempt, FIRST, false)
      await stage.sql(`update holdfast.effect set ended_at = now() - interval '1 year'`)
      const { operation, pruneEffects } = stage.library
      await operation.runOne(stage.db, pruneEffects.pruneEffects, { days: 1, maxRows: 10 })
      assert.equal(await effect(stage), 'uncertain 1')
    },
  },
} as const satisfies Readonly<Record<string, Scene>>
