import type { Adapter } from '../adapters/adapter.ts'
import { contenderNamed } from '../adapters/contenders.ts'
import { Producer, secondsOf } from './producer.ts'
import type { ChildSetup, CommandName, Commands, Message, Request } from './protocol.ts'
import { WorkerSide } from './worker.ts'

type Handlers = {
  [Name in CommandName]: (...args: Commands[Name]['args']) => Promise<Commands[Name]['result']>
}

/** One process of one contender: it does what the parent asks, over the channel that `fork` opened. */
async function main(): Promise<void> {
  const setup: ChildSetup = JSON.parse(process.argv[2] ?? '{}')
  const load = await contenderNamed(setup.contender).load()
  const adapter = load(setup)
  const handlers = handlersFor(adapter, new Producer(adapter, setup.url, setup.callers))
  process.on('disconnect', () => process.exit(1))
  process.on('message', (request: Request) => void answer(handlers, request))
  send({ kind: 'answer', id: 0, result: undefined })
}

async function answer(handlers: Handlers, { id, command, args }: Request): Promise<void> {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the channel carries no types; Commands tells them
    const handler = handlers[command] as (...args: readonly unknown[]) => Promise<unknown>
    send({ kind: 'answer', id, result: await handler(...args) })
  } catch (error) {
    send({
      kind: 'failure',
      id,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    })
  }
}

function handlersFor(adapter: Adapter, producer: Producer): Handlers {
  let worker: WorkerSide | undefined
  const theWorker = () => {
    if (worker === undefined) throw new Error('no worker was started')
    return worker
  }
  return {
    setup: () => adapter.setup(),
    open: () => adapter.open(),
    warmUp: (...args) => producer.warmUp(...args),
    fill: (...args) => producer.fill(...args),
    bulkFor: (...args) => producer.bulkFor(...args),
    singlesFor: (...args) => producer.singlesFor(...args),
    pace: (...args) => producer.pace(...args),
    saturate: async (...args) => producer.saturate(...args),
    finished: async (jobs) => producer.finished(jobs),
    endSaturation: () => producer.endSaturation(),
    startWorker: async (concurrency, capacity, timing, warmUp = 0) => {
      worker = new WorkerSide(adapter, { capacity, timing, warmUp }, (count) =>
        send({ kind: 'progress', count }),
      )
      await worker.start(concurrency)
    },
    runs: async () => theWorker().runs(),
    stopWorker: () => theWorker().stop(),
    counts: () => adapter.counts(),
    usage: async () => ({
      cpuSeconds: secondsOf(process.cpuUsage()),
      peakMegabytes: process.resourceUsage().maxRSS / 1_024,
    }),
    close: async () => {
      await producer.close()
      await adapter.close()
    },
  }
}

function send(message: Message): void {
  process.send?.(message)
}

await main()
