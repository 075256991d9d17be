import { type Adapter, type AdapterSettings, jobInput, range } from './adapter.ts'
import { RawProducer } from './raw/producer.ts'
import { partitions, schema } from './raw/schema.ts'
import { startRawWorker } from './raw/worker.ts'

/** The SQL of the design in a bare loop: what a library over these tables could reach if it cost nothing. */
export function raw({ url, config, callers }: AdapterSettings): Adapter {
  const producer = new RawProducer(url, callers, config !== 'plain')

  return {
    async setup() {
      await producer.pool.query(schema + partitions(2_000_000, 10))
    },
    async open() {
      await producer.pool.query('select 1')
    },
    enqueueOne: (n) => producer.one(n),
    enqueueWith: (client, n) => producer.send([{ d: jobInput(n) }], client),
    async enqueueMany(from, count, runAt) {
      const at = runAt && { at: runAt }
      await producer.send(range(from, count).map((n) => ({ d: jobInput(n), ...at })))
    },
    startWorker: (settings) => startRawWorker(url, config !== 'no-hint', settings),
    async counts() {
      const { rows } = await producer.pool.query<{ unfinished: number; finished: number }>(
        `select ((select count(*) from ready) + (select coalesce(sum(cardinality(ids)), 0) from lease))::int unfinished,
                (select count(*) from done)::int finished`,
      )
      return rows[0] ?? { unfinished: 0, finished: 0 }
    },
    async close() {
      await producer.pool.end()
    },
  }
}
