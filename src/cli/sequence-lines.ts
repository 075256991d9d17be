import { at } from '../admin/time-text.ts'
import { oneLine } from '../base/one-line.ts'
import type { SequenceInfo } from '../sequences/sequence-options.ts'
import type { Output } from './output.ts'

/** What names a sequence on the command line. */
export const sequenceArgs = {
  name: { type: 'positional', required: true, description: 'Name of the sequence' },
  tenant: { type: 'string', description: "Whose sequence. Default: nobody's" },
} as const

export const drawArgs = {
  'idempotency-key': {
    type: 'string',
    valueHint: 'key',
    description: 'A repetition with the same key is given the same values, for ten minutes',
  },
} as const

/** A sequence for people. */
export function sequenceLines(info: SequenceInfo, output: Output): readonly string[] {
  const rows: readonly (readonly [string, string])[] = [
    ['current', String(info.current)],
    ['initial', String(info.initial)],
    ['increment', String(info.increment)],
    ['max', info.max === undefined ? '-' : String(info.max)],
    ['available', String(info.available)],
    ['draws', String(info.revision)],
    ['created', at(info.createdAt)],
  ]
  return [
    output.heading(oneLine(`"${info.name}"`)),
    ...rows.map(([label, text]) => `  ${label.padEnd(9)}  ${text}`),
  ]
}
