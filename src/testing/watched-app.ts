import { App } from '../app/app.ts'
import type { ProduceOptions } from '../app/produce.ts'
import type { Producer } from '../producers/define-producer.ts'
import { runAs } from './scope.ts'

/** An application whose producers are known, while they run, by what they declare. */
export class WatchedApp extends App {
  override readonly produce: App['produce'] = (async (
    producer: Producer,
    input: unknown,
    options?: ProduceOptions,
  ): Promise<unknown> => {
    // One of its overloads; which one does not matter to what it does.
    const act = async () => await super.produce(producer, input, options as ProduceOptions & { dryRun: true })
    if (producer?.effects === undefined) return await act()
    const { name, effects } = producer
    return await runAs({ kind: 'producer', name, effects }, act)
  }) as App['produce']
}
