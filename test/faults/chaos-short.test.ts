import { expect, test } from 'vitest'
import { runChaos } from '../chaos/run-chaos.ts'

/** The long form is `npm run chaos -- --minutes 3 --seed 1`. */
test('an application under kills, stops, lost replies and restarts of its database keeps every promise', {
  timeout: 180_000,
}, async () => {
  const report = await runChaos({ minutes: 0.35, patienceMs: 60_000, seed: 1 })
  expect(report.violations).toEqual([])
  expect(report.shortages).toEqual([])
  expect(report.ok).toBe(true)
})
