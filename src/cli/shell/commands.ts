import { usageError } from '../cli-error.ts'
import { requireCount } from './arguments.ts'
import { topics } from './help-topics.ts'
import { keyCommands } from './key-commands.ts'
import { allLockCommands } from './lock-commands.ts'
import { sequenceCommands } from './sequence-commands.ts'
import { sessionCommands } from './session-commands.ts'
import type { Call, ShellCommand } from './shell-command.ts'

const help: ShellCommand = {
  name: 'help',
  usage: 'help [COMMAND or TOPIC]',
  summary: `Show this, how a command is used, or a topic: ${[...topics.keys()].join(', ')}`,
  names: 'topics',
  run: async (call) => await Promise.resolve(helpLines(call)),
}

/** All commands, in the order in which help shows them. */
export const commands: readonly ShellCommand[] = [
  ...keyCommands,
  ...allLockCommands,
  ...sequenceCommands,
  ...sessionCommands,
  help,
]

const byName = new Map(commands.map((command) => [command.name, command]))

export function commandNamed(name: string): ShellCommand | undefined {
  return byName.get(name)
}

function helpLines({ args, paint }: Call): readonly string[] {
  requireCount(args, 0, 1)
  const [about] = args
  if (about === undefined) {
    // A list of what can follow would be too wide for a column: `help sequence` has it.
    const heads = commands.map(({ name, usage }) => (usage.includes('|') ? `${name} …` : usage))
    const width = Math.max(...heads.map((head) => head.length))
    return [
      'Type a script, such as set greeting "hello" or get greeting, or a command:',
      ...commands.map(({ summary }, i) => `  ${paint.strong((heads[i] ?? '').padEnd(width))}  ${summary}`),
    ]
  }
  const topic = topics.get(about.toLowerCase())
  if (topic !== undefined) return topic
  const command = commandNamed(about.toLowerCase())
  if (command === undefined)
    throw usageError(`there is no help about "${about}"; topics: ${[...topics.keys()].join(', ')}`)
  return [
    ...command.usage.split(' | ').map((usage, i) => paint.strong(i === 0 ? usage : `  ${usage}`)),
    command.summary,
  ]
}
