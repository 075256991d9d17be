import { parseArgs } from 'node:util'
import { type ChaosReport, runChaos } from './run-chaos.ts'

/** `npm run chaos -- --minutes 3 --seed 1` */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    seed: { type: 'string', default: '1' },
  },
})
const report = await runChaos({
  minutes: Number(values.minutes),
  seed: Number(values.seed),
  onProgress: (line) => console.log(line),
})
print(report)
process.exitCode = report.ok ? 0 : 1
setInterval(() => console.log('STILL', process.getActiveResourcesInfo()), 3000).unref()

function print(r: ChaosReport): void {
  console.log(r.counts, [...r.lostReplies])
  console.log(r.enqueues)
  for (const v of r.verdicts) console.log(v.name, v.checked, v.violations.length, v.violations.slice(0, 5))
  console.log(r.shortages, r.jobs, r.attempts, r.drainedInMs, r.artifacts)
}
