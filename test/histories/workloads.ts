import type { Workload, WorkloadName } from './workload.ts'
import { appendWorkload } from './workloads/appends.ts'
import { bankWorkload } from './workloads/bank.ts'
import { registerWorkload } from './workloads/keys.ts'
import { lockWorkload } from './workloads/locks.ts'
import { sequenceWorkload } from './workloads/sequences.ts'

const all: readonly Workload[] = [
  registerWorkload,
  appendWorkload,
  bankWorkload,
  lockWorkload,
  sequenceWorkload,
]

export const workloadNames: readonly WorkloadName[] = all.map(({ name }) => name)

/** Those of `names`, in the order of the list. */
export function workloadsOf(names: readonly WorkloadName[]): readonly Workload[] {
  return all.filter(({ name }) => names.includes(name))
}
