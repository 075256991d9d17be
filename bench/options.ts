import { parseArgs } from 'node:util'
import { contenders } from './adapters/contenders.ts'
import { FULL, QUICK, type Scale } from './measure/bench.ts'

export interface Options {
  readonly rounds: number
  readonly scale: Scale
  readonly quick: boolean
  readonly all: boolean
  readonly only: readonly string[] | undefined
  readonly contenders: readonly string[] | undefined
  readonly baselines: readonly string[]
}

export const USAGE = `npm run bench -- [options]
  --rounds N           rounds, contenders in turn within each (default 3)
  --only W3,W6         these workloads
  --contenders a,b     these contenders: ${contenders.map(({ name }) => name).join(' ')}
  --baseline a,b       take ratios to these (default graphile-worker,raw)
  --all                every contender that can take part, defaults of the peers included
  --quick              fewer jobs, shorter times, 1 round: for the ratios, in some minutes
  --pinned-seconds N   how long W8 holds its snapshot (default 120, quick 30)`

export function readOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      only: { type: 'string' },
      contenders: { type: 'string' },
      baseline: { type: 'string', default: 'graphile-worker,raw' },
      all: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      'pinned-seconds': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const scale = values.quick ? QUICK : FULL
  const pinned = values['pinned-seconds']
  return {
    rounds: positive('--rounds', values.rounds ?? (values.quick ? '1' : '3')),
    scale:
      pinned === undefined ? scale : { ...scale, pinnedMs: positive('--pinned-seconds', pinned) * 1_000 },
    quick: values.quick,
    all: values.all,
    only: list(values.only),
    contenders: list(values.contenders),
    baselines: list(values.baseline) ?? [],
  }
}

function list(text: string | undefined): readonly string[] | undefined {
  return text?.split(',').filter((item) => item !== '')
}

function positive(name: string, text: string): number {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`${name} takes a whole number from 1 on, not "${text}"`)
  return number
}
