import fs from 'node:fs/promises'
import { text as readAll } from 'node:stream/consumers'
import { HoldfastError } from '../../base/errors.ts'
import { limits } from '../../base/limits.ts'
import type { ScriptResult } from '../../scripts/result.ts'
import { CliError, usageError } from '../cli-error.ts'
import { command, numberOption } from '../command.ts'
import { errorText, exitCodeOf } from '../error-text.ts'
import { openDatabase } from '../open-database.ts'
import { scriptExcerpt } from '../script-excerpt.ts'
import { scriptDocument, scriptLines } from '../script-output.ts'

/** Runs a script from a file, as `app.script` does. */
export const script = command({
  name: 'script',
  description: 'Run a script over keys, in one transaction',
  args: {
    file: { type: 'positional', required: true, description: 'File with the script; - is standard input' },
    param: {
      type: 'string',
      valueHint: 'name=value',
      description: 'A parameter; give the option again for more',
    },
    tenant: { type: 'string', description: 'Whose keys. Default: none' },
    'timeout-ms': {
      type: 'string',
      valueHint: 'ms',
      description: 'How long it may run: 1 to 300,000. Default: 5,000',
    },
    'lock-wait-ms': {
      type: 'string',
      valueHint: 'ms',
      description: 'How long it waits for a locked key: 0 to 300,000. Default: 1,000',
    },
  },
  async run({ args, every, output }) {
    const params = readParams(every('param'))
    const timeoutMs = numberOption('--timeout-ms', args['timeout-ms'], limits.scriptTimeoutMs)
    const lockWaitMs = numberOption('--lock-wait-ms', args['lock-wait-ms'], limits.lockWaitMs)
    const text = await readScript(args.file)
    await using opened = await openDatabase(args)
    let result: ScriptResult
    try {
      const options = { timeoutMs, lockWaitMs, ...(args.tenant === undefined ? {} : { tenant: args.tenant }) }
      result = await opened.coordination.script(text, params, options)
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
      const excerpt = scriptExcerpt(error, text)
      if (excerpt === undefined) throw error
      throw new CliError(`${error.message}\n${excerpt}`, { exitCode: exitCodeOf(error) })
    }
    output.print(scriptDocument(result), () => scriptLines(result, process.stdout.isTTY === true))
  },
})

function readParams(given: readonly string[]): Readonly<Record<string, string>> {
  const params = new Map<string, string>()
  for (const param of given) {
    const end = param.indexOf('=')
    const name = param.slice(0, end).replace(/^@/, '')
    if (end < 1 || name === '') throw usageError(`--param takes name=value, not "${param}"`)
    if (params.has(name)) throw usageError(`--param ${name} is given twice`)
    params.set(name, param.slice(end + 1))
  }
  return Object.fromEntries(params)
}

async function readScript(file: string): Promise<string> {
  try {
    const text = file === '-' ? await readAll(process.stdin) : await fs.readFile(file, 'utf8')
    return text.replace(/^\uFEFF/, '')
  } catch (cause) {
    throw usageError(
      `the script cannot be read: ${
        errorText(cause)
          .replace(/^error: /, '')
          .split('\n', 1)[0]
      }`,
    )
  }
}
