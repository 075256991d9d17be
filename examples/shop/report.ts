import { format } from './display.ts'
import { brokenPromises, missedFaults, some, unfinished, type Verdict } from './verdict.ts'

export interface ReportOptions {
  readonly mode: 'server' | 'embedded'
  /** Name and version of the database. */
  readonly database: string
  readonly seed: number
  readonly durationMs: number
}

export interface Report {
  readonly text: string
  /** 0 if every promise was kept and every fault hit, else 1. */
  readonly exitCode: 0 | 1
}

type Row = readonly [label: string, value: string, remark: string]

export function writeReport(verdict: Verdict, options: ReportOptions): Report {
  const embedded = options.mode === 'embedded'
  const broken = brokenPromises(verdict)
  const missed = embedded ? unfinished(verdict) : missedFaults(verdict)
  const rows = [...outcomeRows(verdict), ...(embedded ? embeddedFaultRows : faultRows(verdict))]
  const seconds = (options.durationMs / 1_000).toFixed(1)

  const text = [
    '',
    formatTable([...rows, ['time', `${seconds} s`, `${options.database}, seed ${options.seed}`]]),
    '',
    ...(embedded ? [] : [...whyOnce(verdict), '']),
    ...[...broken, ...missed].map((sentence) => `  ✗ ${sentence}`),
    ...conclude(broken, missed, embedded),
    '',
  ].join('\n')
  return { text, exitCode: broken.length + missed.length === 0 ? 0 : 1 }
}

function outcomeRows(verdict: Verdict): Row[] {
  const { lost, ghosts, garbled, twice } = verdict
  return [
    ['orders confirmed', format(verdict.confirmed), 'each in one transaction with its job'],
    ['orders rolled back', format(verdict.rolledBack), 'on purpose, after the enqueue'],
    ['mails delivered', format(verdict.delivered), 'by two real SMTP servers'],
    [
      'jobs lost',
      format(lost.length),
      lost.length === 0 ? 'kept: every confirmed order was handled' : 'BROKEN',
    ],
    [
      'ghosts',
      format(ghosts.length),
      ghosts.length === 0 ? 'kept: nothing rolled back left a trace' : 'BROKEN',
    ],
    [
      'mails garbled',
      format(garbled.length),
      garbled.length === 0 ? 'kept: as the customer typed it' : 'BROKEN',
    ],
    ['mails twice', format(twice.length), twice.length === 0 ? 'kept: the ledger knew, or asked' : 'BROKEN'],
  ]
}

function faultRows(verdict: Verdict): Row[] {
  const { kills, hits, refused, pauses, deduplicated, foundArrived, foundMissing, woken, deaths } = verdict
  const asked = foundArrived + foundMissing
  return [
    ['workers killed (-9)', format(kills), `${hits.length} of them between a mail and its record`],
    ['jobs rescued', format(verdict.rescues), 'by another worker, after the lease'],
    ['workers stopped and woken', format(pauses), 'past the lease, their job done elsewhere meanwhile'],
    [
      'stale writes refused',
      format(refused),
      refused === 0 ? 'none seen' : 'kept: the fencing token was old',
    ],
    ['repeated, delivered once', format(deduplicated), 'by the provider: they had the same key'],
    [
      'doubts put to the server',
      format(asked),
      `${foundArrived} mails had arrived, ${foundMissing} were sent then`,
    ],
    [
      'sent by woken workers',
      format(woken.length),
      woken.length === 0 ? 'none this time' : 'not prevented, see below',
    ],
    ...(deaths.length > 0 ? [['workers that died', format(deaths.length), 'BROKEN'] as const] : []),
  ]
}

/** One process has nobody who could kill it and go on to tell. */
const embeddedFaultRows: Row[] = [
  ['workers killed (-9)', '–', 'all runs in one process: there is nobody to kill'],
  ['stale writes refused', '–', 'nor to be overtaken by; run without --pglite for that'],
]

/** What the ledger does, and what no ledger can do. */
function whyOnce({ woken }: Verdict): string[] {
  return [
    `  The ledger commits the intent to send before the mail, and the receipt after it. Where a worker died
  in between, the next one knows that it does not know: it repeats under the same key at the provider,
  which delivers once, or asks the plain server for the Message-ID before it sends.`,
    '',
    `  What stays: a worker that was stopped after its intent and before its mail, for longer than its lease,
  sends the mail when it wakes, while another has sent it meanwhile. Its record is refused, but no lease
  reaches into a mail server that takes whatever comes. ${wokenText(woken)}
  At the provider the same mail is a duplicate.`,
  ]
}

function wokenText(woken: readonly string[]): string {
  if (woken.length === 0) return 'It did not come to that in this run.'
  return woken.length === 1
    ? `Here it hit one order: ${woken[0]}.`
    : `Here it hit ${woken.length} orders: ${some(woken)}.`
}

function conclude(broken: readonly string[], missed: readonly string[], embedded: boolean): string[] {
  if (broken.length > 0) return ['  A promise was broken.']
  if (missed.length > 0) return ['  No promise was broken, but the run proves nothing.']
  return [embedded ? '  All promises kept.' : '  All promises kept, and the faults hit.']
}

function formatTable(rows: readonly Row[]): string {
  const [first, second, third] = [0, 1, 2].map((column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  ) as [number, number, number]
  const rule = (left: string, middle: string, right: string) =>
    `  ${left}${[first, second, third].map((width) => '─'.repeat(width + 2)).join(middle)}${right}`
  const lines = rows.map(
    ([label, value, remark]) =>
      `  │ ${label.padEnd(first)} │ ${value.padStart(second)} │ ${remark.padEnd(third)} │`,
  )
  return [rule('┌', '┬', '┐'), ...lines, rule('└', '┴', '┘')].join('\n')
}
