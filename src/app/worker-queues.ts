import { checkNumber } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import type { WorkerOptions } from './app-options.ts'
import type { Composition } from './composition.ts'

/**
 * The queues that a worker is to serve, with its concurrency for each.
 *
 * @throws {InvalidArgumentError} A queue is not configured, none is named, or a concurrency is out of range.
 */
export function workerQueues(
  { queues }: Composition,
  options: WorkerOptions,
): readonly { readonly name: string; readonly concurrency: number }[] {
  const names = options.queues ?? [...queues.keys()]
  if (names.length === 0)
    throw new InvalidArgumentError({ field: 'queues', problem: 'must name at least one queue' })
  const concurrencies = new Map(Object.entries(options.concurrency ?? {}))
  for (const name of concurrencies.keys()) {
    if (names.includes(name)) continue
    const problem = `names "${name}", which is not a queue of this worker`
    throw new InvalidArgumentError({ field: 'concurrency', problem })
  }
  return [...new Set(names)].map((name) => {
    const configured = queues.get(name)
    if (configured === undefined) {
      const problem = `names "${name}"; configured are: ${[...queues.keys()].join(', ')}`
      throw new InvalidArgumentError({ field: 'queues', problem })
    }
    const given = concurrencies.get(name) ?? configured.concurrency
    return { name, concurrency: checkNumber(`concurrency.${name}`, given, limits.concurrency) }
  })
}
