import type { AdapterFactory, Config } from './adapter.ts'

export interface Contender {
  readonly name: string
  readonly server: 'postgres' | 'redis-always' | 'redis-everysec'
  readonly config: Config
  /** Loaded only in the process that runs it: some peers do not start on the Node of the others. */
  readonly load: () => Promise<AdapterFactory>
  /** Jobs a drain takes, as a share of the full number: slow contenders would take minutes. */
  readonly share: number
}

const graphile = async () => (await import('./graphile-worker.ts')).graphileWorker
const boss = async () => (await import('./pg-boss.ts')).pgBoss
const raw = async () => (await import('./raw.ts')).raw
const bull = async () => (await import('./bullmq.ts')).bullmq

export const contenders: readonly Contender[] = [
  {
    name: 'holdfast',
    server: 'postgres',
    config: 'default',
    load: async () => (await import('./holdfast.ts')).holdfast,
    share: 1,
  },
  { name: 'raw', server: 'postgres', config: 'best', load: raw, share: 1 },
  { name: 'raw-plain', server: 'postgres', config: 'plain', load: raw, share: 1 },
  { name: 'raw-no-hint', server: 'postgres', config: 'no-hint', load: raw, share: 1 },
  { name: 'graphile-worker', server: 'postgres', config: 'best', load: graphile, share: 1 },
  { name: 'graphile-worker-default', server: 'postgres', config: 'default', load: graphile, share: 0.1 },
  { name: 'pg-boss', server: 'postgres', config: 'best', load: boss, share: 1 },
  { name: 'pg-boss-default', server: 'postgres', config: 'default', load: boss, share: 0.1 },
  {
    name: 'absurd',
    server: 'postgres',
    config: 'best',
    load: async () => (await import('./absurd.ts')).absurd,
    share: 0.05,
  },
  { name: 'bullmq', server: 'redis-always', config: 'best', load: bull, share: 0.2 },
  { name: 'bullmq-everysec', server: 'redis-everysec', config: 'best', load: bull, share: 0.2 },
]

export function contenderNamed(name: string): Contender {
  const found = contenders.find((contender) => contender.name === name)
  if (found === undefined)
    throw new Error(`no contender "${name}": ${contenders.map((c) => c.name).join(', ')}`)
  return found
}
