import { usageError } from './cli-error.ts'
import type { CommonArgs } from './command.ts'

/** The options with the app file that was given as an argument, where a command takes it so. */
export function withAppFile(args: CommonArgs & { readonly file?: string | undefined }): CommonArgs {
  const { file, app, database, schema } = args
  if (file !== undefined && app !== undefined)
    throw usageError('the app file is given twice, as an argument and as --app; give it once')
  return { app: app ?? file, database, schema }
}
