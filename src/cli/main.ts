#!/usr/bin/env node
import { type ArgsDef, type CommandDef, defineCommand, renderUsage, runCommand } from 'citty'
import { version } from '../app/version.ts'
import { usageError } from './cli-error.ts'
import { check } from './commands/check.ts'
import { crashTest } from './commands/crash-test.ts'
import { dev } from './commands/dev.ts'
import { effectsList } from './commands/effects-list.ts'
import { effectsResolve } from './commands/effects-resolve.ts'
import { effectsShow } from './commands/effects-show.ts'
import { jobsCancel } from './commands/jobs-cancel.ts'
import { jobsDiscard } from './commands/jobs-discard.ts'
import { jobsList } from './commands/jobs-list.ts'
import { jobsMove } from './commands/jobs-move.ts'
import { jobsPrune } from './commands/jobs-prune.ts'
import { jobsRetry } from './commands/jobs-retry.ts'
import { jobsShow } from './commands/jobs-show.ts'
import { keysDelete } from './commands/keys-delete.ts'
import { keysGet } from './commands/keys-get.ts'
import { keysHistory } from './commands/keys-history.ts'
import { keysList } from './commands/keys-list.ts'
import { keysSet } from './commands/keys-set.ts'
import { keysWatch } from './commands/keys-watch.ts'
import { locksList } from './commands/locks-list.ts'
import { locksRelease } from './commands/locks-release.ts'
import { locksShow } from './commands/locks-show.ts'
import { manifest } from './commands/manifest.ts'
import { migrate } from './commands/migrate.ts'
import { queuesList } from './commands/queues-list.ts'
import { queuesPause } from './commands/queues-pause.ts'
import { queuesResume } from './commands/queues-resume.ts'
import { script } from './commands/script.ts'
import { sequencesCreate } from './commands/sequences-create.ts'
import { sequencesDelete } from './commands/sequences-delete.ts'
import { sequencesGet } from './commands/sequences-get.ts'
import { sequencesList } from './commands/sequences-list.ts'
import { sequencesNext } from './commands/sequences-next.ts'
import { sequencesReserve } from './commands/sequences-reserve.ts'
import { shell } from './commands/shell.ts'
import { status } from './commands/status.ts'
import { worker } from './commands/worker.ts'
import { errorText, exitCodeOf } from './error-text.ts'
import { exitCodes } from './exit-codes.ts'
import { createMask } from './secrets.ts'

type Command = CommandDef<ArgsDef>

interface Group {
  readonly description: string
  readonly commands: ReadonlyMap<string, Command>
  /** What the group alone means. Default: its help. */
  readonly otherwise?: Command
}

const jobCommands = {
  list: jobsList,
  show: jobsShow,
  retry: jobsRetry,
  cancel: jobsCancel,
  discard: jobsDiscard,
  move: jobsMove,
  prune: jobsPrune,
}
const effectCommands = { list: effectsList, show: effectsShow, resolve: effectsResolve }
const sequenceCommands = {
  create: sequencesCreate,
  next: sequencesNext,
  reserve: sequencesReserve,
  get: sequencesGet,
  delete: sequencesDelete,
  list: sequencesList,
}
const lockCommands = { list: locksList, show: locksShow, release: locksRelease }
const keyCommands = {
  get: keysGet,
  set: keysSet,
  delete: keysDelete,
  list: keysList,
  history: keysHistory,
  watch: keysWatch,
}
const queueCommands = { list: queuesList, pause: queuesPause, resume: queuesResume }

// Maps, not objects: `holdfast constructor` is no command.
const commands = new Map<string, Command>(
  Object.entries({ dev, check, migrate, worker, status, shell, script, manifest, 'crash-test': crashTest }),
)
const groups = new Map<string, Group>([
  [
    'jobs',
    { description: 'Look at jobs and decide about them', commands: new Map(Object.entries(jobCommands)) },
  ],
  [
    'effects',
    {
      description: 'Look at effects on the outside, and decide about those in doubt',
      commands: new Map(Object.entries(effectCommands)),
    },
  ],
  ['keys', { description: 'Read, set, list and watch keys', commands: new Map(Object.entries(keyCommands)) }],
  [
    'locks',
    {
      description: 'Look at locks, and take one from a holder that is gone',
      commands: new Map(Object.entries(lockCommands)),
      otherwise: locksList,
    },
  ],
  [
    'queues',
    {
      description: 'Look at queues, pause and resume them',
      commands: new Map(Object.entries(queueCommands)),
      otherwise: queuesList,
    },
  ],
  [
    'sequences',
    {
      description: 'Create sequences, draw values, look at them',
      commands: new Map(Object.entries(sequenceCommands)),
      otherwise: sequencesList,
    },
  ],
])

interface Found {
  readonly command: Command
  readonly rest: readonly string[]
}

/** Finds the command that the arguments name, and its own arguments. */
function findCommand(args: readonly string[]): Found | undefined {
  const [first = '', second = ''] = args
  const command = commands.get(first)
  if (command !== undefined) return { command, rest: args.slice(1) }
  const group = groups.get(first)
  const member = group?.commands.get(second)
  if (member !== undefined) return { command: member, rest: args.slice(2) }
  const isAlone = second === '' || second.startsWith('-')
  if (group?.otherwise === undefined || !isAlone) return undefined
  return { command: group.otherwise, rest: args.slice(1) }
}

/** The commands of one group, or all, as citty wants them for its help. */
function helpOf(name: string): Command {
  const group = groups.get(name)
  const asCommand = (groupName: string, { description, commands: members }: Group): Command =>
    defineCommand({
      meta: { name: `holdfast ${groupName}`.trim(), description },
      subCommands: Object.fromEntries(members),
    })
  if (group !== undefined) return asCommand(name, group)
  const named = [...groups].map(([groupName, each]) => [groupName, asCommand(groupName, each)] as const)
  const description = `Durable jobs in PostgreSQL, version ${version}`
  return asCommand('', { description, commands: new Map([...commands, ...named]) })
}

async function main(args: readonly string[]): Promise<number> {
  const found = findCommand(args)
  const [first = ''] = args
  const wantsHelp = args.some((arg) => arg === '--help' || arg === '-h')
  const isIncomplete = args.length === 0 || (args.length === 1 && groups.has(first) && found === undefined)
  if (wantsHelp || isIncomplete) {
    const usage = await renderUsage(found?.command ?? helpOf(first))
    process.stdout.write(`${usage}\n`)
    return isIncomplete ? exitCodes.usage : exitCodes.done
  }
  if (args.length === 1 && (first === '--version' || first === '-v')) {
    process.stdout.write(`${version}\n`)
    return exitCodes.done
  }
  if (found === undefined)
    throw usageError(`there is no command "${args.slice(0, 2).join(' ')}"; see "holdfast --help"`)
  await runCommand(found.command, { rawArgs: [...found.rest] })
  return Number(process.exitCode ?? exitCodes.done)
}

const args = process.argv.slice(2)
// A reader that has seen enough (head, less) closes the pipe: that is no failure.
process.stdout.on('error', () => process.exit(exitCodes.done))

let code: number
try {
  code = await main(args)
} catch (error) {
  const mask = createMask([...args, process.env['DATABASE_URL']])
  process.stderr.write(`${mask(errorText(error))}\n`)
  code = exitCodeOf(error)
}
// The app file may have opened what keeps a process alive, and a handler that never returned is still there.
process.stdout.write('', () => process.exit(code))
