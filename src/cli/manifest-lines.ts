import type { Manifest } from '../admin/manifest.ts'
import type { Output } from './output.ts'

/** The manifest as tables for people. */
export function manifestLines(manifest: Manifest, output: Output): readonly string[] {
  return [
    output.heading(`${manifest.app}, schema "${manifest.schema}"`),
    '',
    ...output.table(
      manifest.queues,
      [
        { title: 'queue', value: (queue) => queue.name },
        { title: 'concurrency', value: (queue) => queue.concurrency, right: true },
      ],
      'no queues',
    ),
    '',
    ...output.table(
      manifest.jobs,
      [
        { title: 'job', value: (job) => job.name },
        { title: 'queue', value: (job) => job.queue },
        { title: 'priority', value: (job) => job.priority, right: true },
        { title: 'attempts', value: (job) => job.maxAttempts, right: true },
        {
          title: 'timeout',
          value: (job) => (job.timeoutMs === null ? null : `${job.timeoutMs} ms`),
          right: true,
        },
        { title: 'uses', value: (job) => listed(job.uses) },
        { title: 'contract', value: (job) => job.contract },
      ],
      'no jobs',
    ),
    '',
    ...output.table(manifest.producers, [{ title: 'producer', value: (each) => each.name }], 'no producers'),
    '',
    ...output.table(
      manifest.effects,
      [
        { title: 'effect', value: (each) => each.effect },
        { title: 'of producers', value: (each) => listed(each.producers) },
        { title: 'of jobs', value: (each) => listed(each.jobs) },
      ],
      'no effects are declared',
    ),
    '',
    ...output.table(
      manifest.resources,
      [
        { title: 'resource', value: (each) => each.name },
        { title: 'provides', value: (each) => listed(each.provides) },
      ],
      'no resources',
    ),
  ]
}

function listed(names: readonly string[]): string | null {
  return names.length === 0 ? null : names.join(', ')
}
