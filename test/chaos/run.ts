import { parseArgs } from 'node:util'
import { type ControlName, controls } from './controls.ts'
import { printControls, printReport } from './print.ts'
import { runChaos } from './run-chaos.ts'
import { runControls } from './run-controls.ts'

const HELP = `npm run chaos -- [options]

  --minutes N      how long faults are made, from 0.2 (default 3); the least number of faults that must hit grows with it
  --seed S         which faults, and when (default 1)
  --control NAME   breaks one statement of a copy of the library; exit code 0 if that was noticed
  --controls       every control, one after the other
  --list           the controls

Exit code 0: every invariant held and every fault hit often enough. A failed run keeps its histories in a folder.
`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    seed: { type: 'string', default: '1' },
    control: { type: 'string', multiple: true },
    controls: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

process.exitCode = await main()

async function main(): Promise<number> {
  const all = Object.keys(controls) as ControlName[]
  if (values.help) return say(HELP)
  if (values.list)
    return say(
      all.map((name) => `${name}: ${controls[name].statement}, ${controls[name].takesOut}\n`).join(''),
    )
  const wanted = values.controls ? all : values.control
  if (wanted === undefined) return await runOnce()
  const unknown = wanted.filter((name) => !(name in controls))
  if (unknown.length > 0) {
    console.error(`no such control: ${unknown.join(', ')}; --list shows them`)
    return 2
  }
  return (await runControls(wanted as ControlName[], printControls())) ? 0 : 1
}

async function runOnce(): Promise<number> {
  const minutes = Number(values.minutes)
  const seed = Number(values.seed)
  if (!(minutes >= 0.2 && minutes <= 24 * 60) || !Number.isInteger(seed)) {
    console.error('--minutes is from 0.2 to 1440, --seed a whole number')
    return 2
  }
  const report = await runChaos({ minutes, seed, onProgress: (line) => console.log(line) })
  printReport(report)
  return report.ok ? 0 : 1
}

function say(text: string): number {
  process.stdout.write(text)
  return 0
}
