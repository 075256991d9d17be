import { at, span } from '../../admin/time-text.ts'
import type { Durability } from '../../base/durability.ts'
import { oneName, requireCount } from './arguments.ts'
import type { Paint } from './paint.ts'
import type { ShellChange, ShellEntry } from './services.ts'
import type { Call, ShellCommand } from './shell-command.ts'

const SHOWN = 200
const REVISIONS = 100

export const keyCommands: readonly ShellCommand[] = [
  listCommand('keys', 'persistent'),
  listCommand('ekeys', 'ephemeral'),
  {
    name: 'history',
    usage: 'history [KEY]',
    summary: 'Show the revisions of a key, newest first; without KEY, what was typed here',
    names: 'keys',
    isTimed: true,
    run: async (call) => (call.args.length === 0 ? typed(call) : await revisions(call)),
  },
  {
    name: 'watch',
    usage: 'watch [PREFIX]',
    summary: 'Print each change of keys that begin so, until Ctrl-C',
    names: 'keys',
    run: async (call) => await watch(call),
  },
]

function listCommand(name: 'keys' | 'ekeys', durability: Durability): ShellCommand {
  return {
    name,
    usage: `${name} [PREFIX]`,
    summary: `List ${durability === 'ephemeral' ? 'ephemeral ' : ''}keys with their values`,
    names: name,
    isTimed: true,
    async run({ args, session, paint }) {
      requireCount(args, 0, 1)
      const { tenant } = session
      const [prefix = ''] = args
      const page = await session.services.keys.list({ prefix, durability, limit: SHOWN, tenant })
      if (page.entries.length === 0) return [paint.refused('no keys')]
      return [
        ...page.entries.map((entry) => entryLine(entry, paint)),
        ...(page.more ? [paint.faint('there are more; give a longer prefix')] : []),
      ]
    },
  }
}

async function revisions({ args, session, paint }: Call): Promise<readonly string[]> {
  const { tenant } = session
  const found = await session.services.keys.revisions(oneName(args, 'KEY'), { tenant, limit: REVISIONS })
  if (found.length === 0) return [paint.refused('no revisions')]
  return found.map(
    ({ revision, value, modifiedAt }) =>
      `${paint.revision(revision)} ${paint.faint(at(modifiedAt ?? null))} ${valueOf(value, paint)}`,
  )
}

/** Printed at once: nobody wants to know how long it took. */
function typed({ session, paint, print }: Call): readonly string[] {
  const inputs = session.inputs()
  if (inputs.length === 0) return [paint.refused('nothing yet')]
  for (const input of inputs) print(paint.value(input))
  return []
}

async function watch({ args, session, paint, signal, print }: Call): Promise<readonly string[]> {
  requireCount(args, 0, 1)
  const { tenant } = session
  try {
    const changes = await session.services.keys.watch(args[0] ?? '', { tenant, signal })
    print(paint.faint('watching; Ctrl-C ends it'))
    for await (const change of changes) print(changeLine(change, paint))
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return []
}

function entryLine({ key, revision, value, expiresAt }: ShellEntry, paint: Paint): string {
  const rest =
    expiresAt === undefined ? '' : `  ${paint.faint(`${span(expiresAt.getTime() - Date.now())} left`)}`
  return `${paint.revision(revision)} ${paint.strong(paint.value(key))} ${valueOf(value, paint)}${rest}`
}

function changeLine({ key, revision, value, kind }: ShellChange, paint: Paint): string {
  const what = kind === 'set' || kind === 'extended' ? paint.done(kind) : paint.refused(kind)
  if (key === undefined || revision === undefined) return what
  const after = value === undefined ? '' : ` ${paint.value(value)}`
  return `${paint.revision(revision)} ${what} ${paint.strong(paint.value(key))}${after}`
}

function valueOf(value: string | undefined, paint: Paint): string {
  return value === undefined ? paint.refused('deleted') : paint.value(value)
}
