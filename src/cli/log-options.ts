import type { LogLevel } from '../app/logger.ts'
import { checkOneOf } from '../base/check.ts'
import type { Output } from './output.ts'

/** Options of the commands that write a log. */
export const logArgs = {
  'log-level': {
    type: 'string',
    valueHint: 'level',
    description: 'debug, info, warn, error or silent. Default: info',
  },
  'log-format': {
    type: 'string',
    valueHint: 'format',
    description: 'pretty, json, or auto: pretty on a terminal',
  },
} as const

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies readonly LogLevel[]
const formats = ['pretty', 'json', 'auto'] as const

export interface LogArgs {
  readonly 'log-level'?: string | undefined
  readonly 'log-format'?: string | undefined
  readonly json?: boolean | undefined
}

/**
 * How a command logs; `--json` asks for JSON lines too.
 *
 * @throws {InvalidArgumentError} A level or format is unknown.
 */
export function logOptions(
  args: LogArgs,
  output: Output,
  defaults: { readonly level: LogLevel; readonly format: 'pretty' | 'auto' } = {
    level: 'info',
    format: 'auto',
  },
) {
  const format = args['log-format'] ?? (args.json ? 'json' : defaults.format)
  return {
    level: checkOneOf('--log-level', args['log-level'] ?? defaults.level, levels),
    format: checkOneOf('--log-format', format, formats),
    color: output.color,
  }
}
