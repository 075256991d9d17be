import fs from 'node:fs/promises'
import { limits } from '../../base/limits.ts'
import { CliError, usageError } from '../cli-error.ts'
import { oneName, requireCount } from './arguments.ts'
import type { ShellCommand } from './shell-command.ts'
import { wordsOf } from './words.ts'

const PARAM = /^@([A-Za-z0-9_]+)(?:\s+([\s\S]+))?$/

export const sessionCommands: readonly ShellCommand[] = [
  {
    name: 'run',
    usage: 'run FILE',
    summary: 'Run a file as one script, with the parameters of this shell',
    names: 'files',
    isTimed: true,
    async run({ args, session, signal }) {
      const text = await readScript(oneName(args, 'FILE'))
      return await session.script(text, signal)
    },
  },
  {
    name: 'param',
    usage: 'param [@NAME VALUE]',
    summary: 'Set a parameter for scripts, as text; without anything, show all',
    names: 'params',
    async run({ rest, session, paint }) {
      if (rest === '')
        return session.params.size === 0
          ? [paint.refused('no parameters')]
          : [...session.params].map(([name, value]) => `@${name} ${paint.value(value)}`)
      const [, name, value] = PARAM.exec(rest) ?? []
      if (name === undefined || value === undefined) throw usageError('write it as: param @name value')
      const [word = '', ...more] = wordsOf(value)
      // Quotes hold what has blanks together, and are not part of it; without quotes it is the rest of the line.
      session.params.set(name, more.length === 0 ? word : value)
      return await Promise.resolve([`@${name} ${paint.done('set')}`])
    },
  },
  {
    name: 'unparam',
    usage: 'unparam @NAME',
    summary: 'Forget a parameter',
    names: 'params',
    async run({ args, session, paint }) {
      const name = oneName(args, '@NAME').replace(/^@/, '')
      const wasSet = session.params.delete(name)
      return await Promise.resolve([wasSet ? paint.done('forgotten') : paint.refused('not set')])
    },
  },
  {
    name: 'clear',
    usage: 'clear',
    summary: 'Clear the screen',
    async run({ args, session }) {
      requireCount(args, 0, 0)
      session.clear()
      return await Promise.resolve([])
    },
  },
  ...['exit', 'quit'].map(
    (name): ShellCommand => ({
      name,
      usage: name,
      summary: 'Release the locks of this shell, and leave; Ctrl-D does too',
      async run({ args, session }) {
        requireCount(args, 0, 0)
        session.ended = true
        return await Promise.resolve([])
      },
    }),
  ),
]

async function readScript(file: string): Promise<string> {
  try {
    const { size } = await fs.stat(file)
    if (size > limits.inputBytes.max) throw new CliError(`"${file}" is too large for a script`)
    return await fs.readFile(file, 'utf8')
  } catch (error) {
    if (error instanceof CliError) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new CliError(`"${file}" cannot be read${code === undefined ? '' : ` (${code})`}; check the path`)
  }
}
