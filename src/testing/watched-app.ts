import { App } from '../app/app.ts'
import type { ProduceOptions } from '../app/produce.ts'
import type { Producer } from '../producers/define-producer.ts'
import { runAs } from './scope.ts'

/** An application whose producers are known by what they declare. */
export class WatchedApp extends App {
  // The signatures are those of `App`; only who asks is noted.
  override readonly produce: App['produce'] = (async (
    producer: Producer,
    input: unknown,
    options?: ProduceOptions,
  ) => {
    const plain = App.prototype.produce as (...given: readonly unknown[]) => Promise<unknown>
    const act = async () => await plain.call(this, producer, input, options)
    if (producer?.effects === undefined) return await act()
    const { name, effects } = producer
    return await runAs({ kind: 'producer', name, effects }, act)
  }) as App['produce']
}
