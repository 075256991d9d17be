#!/usr/bin/env node
import { type ArgsDef, type CommandDef, defineCommand, renderUsage, runCommand } from 'citty'
import { version } from '../app/version.ts'
import { usageError } from './cli-error.ts'
import { dev } from './commands/dev.ts'
import { jobsCancel } from './commands/jobs-cancel.ts'
import { jobsDiscard } from './commands/jobs-discard.ts'
import { jobsList } from './commands/jobs-list.ts'
import { jobsMove } from './commands/jobs-move.ts'
import { jobsPrune } from './commands/jobs-prune.ts'
import { jobsRetry } from './commands/jobs-retry.ts'
import { jobsShow } from './commands/jobs-show.ts'
import { manifest } from './commands/manifest.ts'
import { migrate } from './commands/migrate.ts'
import { queuesList } from './commands/queues-list.ts'
import { queuesPause } from './commands/queues-pause.ts'
import { queuesResume } from './commands/queues-resume.ts'
import { status } from './commands/status.ts'
import { worker } from './commands/worker.ts'
import { errorText, exitCodeOf } from './error-text.ts'
import { exitCodes } from './exit-codes.ts'
import { createMask } from './secrets.ts'

type Command = CommandDef<ArgsDef>
type Group = {
  readonly description: string
  readonly commands: Readonly<Record<string, Command>>
  readonly otherwise?: string
}

const groups: Readonly<Record<string, Group>> = {
  jobs: {
    description: 'Look at jobs and decide about them',
    commands: {
      list: jobsList,
      show: jobsShow,
      retry: jobsRetry,
      cancel: jobsCancel,
      discard: jobsDiscard,
      move: jobsMove,
      prune: jobsPrune,
    },
  },
  queues: {
    description: 'Look at queues, pause and resume them',
    commands: { list: queuesList, pause: queuesPause, resume: queuesResume },
    otherwise: 'list',
  },
}
const commands: Readonly<Record<string, Command>> = { dev, migrate, worker, status, manifest }

/** Finds the command that the arguments name, and its own arguments. */
function findCommand(
  args: readonly string[],
): { readonly command: Command; readonly rest: readonly string[] } | undefined {
  const [first = '', second = ''] = args
  if (Object.hasOwn(commands, first)) return { command: commands[first] as Command, rest: args.slice(1) }
  const group = Object.hasOwn(groups, first) ? groups[first] : undefined
  if (group === undefined) return undefined
  if (Object.hasOwn(group.commands, second))
    return { command: group.commands[second] as Command, rest: args.slice(2) }
  const otherwise = group.otherwise === undefined ? undefined : group.commands[group.otherwise]
  const isNamed = second !== '' && !second.startsWith('-')
  return otherwise === undefined || isNamed ? undefined : { command: otherwise, rest: args.slice(1) }
}

/** The whole tree, for the help alone. */
function tree(path: readonly string[]): Command {
  const group = groups[path[0] ?? '']
  const asCommand = (name: string, { description, commands: subCommands }: Group): Command =>
    defineCommand({ meta: { name: `holdfast ${name}`.trim(), description }, subCommands: { ...subCommands } })
  if (group !== undefined) return asCommand(path[0] ?? '', group)
  const named = Object.entries(groups).map(([name, each]) => [name, asCommand(name, each)] as const)
  return asCommand('', {
    description: `Durable jobs in PostgreSQL, version ${version}`,
    commands: { ...commands, ...Object.fromEntries(named) },
  })
}

async function main(args: readonly string[]): Promise<number> {
  const found = findCommand(args)
  if (args.some((arg) => arg === '--help' || arg === '-h') || args.length === 0 || isBareGroup(args)) {
    const usage = found && args.length > 0 ? await renderUsage(found.command) : await renderUsage(tree(args))
    process.stdout.write(`${usage}\n`)
    return args.length === 0 || (found === undefined && isBareGroup(args)) ? exitCodes.usage : exitCodes.done
  }
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-v')) {
    process.stdout.write(`${version}\n`)
    return exitCodes.done
  }
  if (found === undefined)
    throw usageError(`there is no command "${args.slice(0, 2).join(' ')}"; see "holdfast --help"`)
  await runCommand(found.command, { rawArgs: [...found.rest] })
  return Number(process.exitCode ?? exitCodes.done)
}

function isBareGroup(args: readonly string[]): boolean {
  return args.length === 1 && groups[args[0] ?? ''] !== undefined && findCommand(args) === undefined
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
