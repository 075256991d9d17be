import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { register } from 'tsx/esm/api'

/**
 * Writes docs/reference/limits.md from src/base/limits.ts; with `--check` it only compares, and fails if the page
 * is not what it would write.
 */

const root = fileURLToPath(new URL('..', import.meta.url))
const page = path.join(root, 'docs/reference/limits.md')

/**
 * Where a user meets each limit. A limit that is not here fails the script.
 * @type {Readonly<Record<string, string>>}
 */
const metIn = {
  maxAttempts: '`defineJob`, `enqueue`',
  priority: '`defineJob`, `enqueue`',
  leaseMs: '`defineApp`',
  timeoutMs: '`defineJob`',
  abortGraceMs: '`defineJob`',
  shutdownMs: '`defineApp`',
  shutdownGraceMs: '`defineApp`',
  concurrency: '`queues` of `defineApp`, `app.worker`',
  delayMs: '`enqueue`, `ctx.snooze`, `ctx.retry`',
  maxPollMs: '`defineApp`',
  backoffBaseMs: '`retry.baseMs` of `defineJob`',
  backoffFactor: '`retry.factor` of `defineJob`',
  backoffCapMs: '`retry.capMs` and `retry.delayMs` of `defineJob`',
  inputBytes: 'fixed',
  resultBytes: 'fixed',
  errorBytes: 'fixed',
  errorHistory: 'fixed',
  noteBytes: 'fixed',
  nameBytes: 'names everywhere',
  uniqueKeyBytes:
    '`uniqueKey`, `idempotencyKey` of `enqueue`, `key` of `ctx.effect`, resource and `owner` of locks, names of sequences',
  schemaBytes: '`schema` of `defineApp`',
  completedRetentionDays: '`retention` of `defineApp`, `holdfast jobs prune`',
  cancelledRetentionDays: '`retention` of `defineApp`, `holdfast jobs prune`',
  discardedRetentionDays: '`holdfast jobs prune --state discarded`',
  idempotencyHours: 'fixed',
  bulkCount: '`enqueueMany`',
  pageRows:
    '`holdfast jobs list`, `effects list`, `locks list`, `sequences list`; `locks.list`, `sequences.list`',
  effectWaitMs: '`waitMs` of `ctx.effect`',
  effectHoldMs: '`holdMs` of `app.effect`',
  effectRetentionDays: '`retention.effectDays` of `defineApp`',
  checkpointBytes: 'fixed',
  effectResultBytes: 'fixed',
  contextBytes: 'fixed',
  sequenceBlock: '`app.sequences.cached`',
  lockLeaseMs: '`leaseMs` of `locks.acquire`, `extend`',
  waitMs: '`locks.acquire`',
  retryMs: '`locks.acquire`',
  scriptBytes: '`app.script`',
  scriptNesting: '`app.script`',
  scriptSteps: '`app.script`',
  scriptItems: '`app.script`',
  scriptTextBytes: '`app.script`',
  scriptTimeoutMs: '`timeoutMs` of `app.script`',
  scriptSleepMs: '`sleep` in a script',
  lockWaitMs: '`lockWaitMs` of `app.script`',
  keyValueBytes: 'values of `app.keys`',
  keyTtlMs: '`ttlMs` of `app.keys`',
  keyBatch: '`getMany`, `setMany`, `deleteMany` of `app.keys`',
  keyPageRows: '`limit` of `app.keys.list` and `revisions`',
  keyHoldMs: '`leaseMs` of `app.keys.hold`',
  keyRetentionDays: '`retention.keyDays` of `defineApp`',
  keyRetentionChanges: '`retention.keyChanges` of `defineApp`',
}

register()
const { limits } = await import('../src/base/limits.ts')
const wanted = render(limits)

if (!process.argv.includes('--check')) fs.writeFileSync(page, wanted)
else if (!fs.existsSync(page) || fs.readFileSync(page, 'utf8') !== wanted) {
  console.error(
    'docs/reference/limits.md is not what src/base/limits.ts says: run node scripts/docs-limits.mjs',
  )
  process.exitCode = 1
}

/** @param {Readonly<Record<string, import('../src/base/limits.ts').Limit>>} all */
function render(all) {
  const unplaced = Object.keys(all).filter((name) => metIn[name] === undefined)
  if (unplaced.length > 0)
    throw new Error(`say in scripts/docs-limits.mjs where to meet ${unplaced.join(', ')}`)
  const rows = Object.entries(all).map(([name, limit]) => ({ name, ...limit, where: metIn[name] ?? '' }))
  return `${[
    '# Limits',
    '',
    'Every range and default, from `src/base/limits.ts` by `node scripts/docs-limits.mjs`; a test compares. A value out',
    'of its range is refused with an `InvalidArgumentError` before anything is sent. *Fixed*: the default always holds.',
    "In code: `import { limits } from 'holdfast'`.",
    '',
    ...table(rows.filter(({ where }) => where !== 'later')),
    '',
    '## Kept for what comes next',
    '',
    'Nothing takes these yet.',
    '',
    ...table(rows.filter(({ where }) => where === 'later')),
  ].join('\n')}\n`
}

/** @param {readonly (import('../src/base/limits.ts').Limit & { name: string, where: string })[]} rows */
function table(rows) {
  return [
    '| limit | default | range | set in | |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map(({ name, unit, where, description, ...limit }) => {
      const value = limit.default === undefined ? 'none' : amount(limit.default, unit)
      const range = where === 'fixed' ? '–' : `${amount(limit.min, unit)} to ${amount(limit.max, unit)}`
      return `| \`${name}\` | ${value} | ${range} | ${where} | ${description} |`
    }),
  ]
}

/**
 * A number with the largest unit that it is a whole multiple of.
 * @param {number} value
 * @param {string} unit
 */
function amount(value, unit) {
  /** @type {readonly (readonly [string, number])[]} */
  const steps =
    unit === 'ms'
      ? [
          ['days', 86_400_000],
          ['h', 3_600_000],
          ['min', 60_000],
          ['s', 1000],
        ]
      : unit === 'bytes'
        ? [
            ['MiB', 1 << 20],
            ['KiB', 1 << 10],
          ]
        : []
  const [name, size] = steps.find(([, step]) => value >= step && value % step === 0) ?? [unit, 1]
  const number = (value / size).toLocaleString('en-US')
  if (name === 'count' || (value === 0 && name !== 'times')) return number
  if (number === '1' && name.length > 3 && name.endsWith('s') && name !== 'times')
    return `1 ${name.slice(0, -1)}`
  return name === 'times' ? `× ${number}` : `${number} ${name}`
}
