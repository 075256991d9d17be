import { type SchemaStatus, schemaStatus } from '../../admin/status.ts'
import type { App } from '../../app/app.ts'
import { CompositionError, HoldfastError, InvalidArgumentError } from '../../base/errors.ts'
import { oneLine } from '../../base/one-line.ts'
import { CliError } from '../cli-error.ts'
import { command } from '../command.ts'
import { openApp } from '../open-database.ts'
import type { Output } from '../output.ts'
import { schemaSentences } from '../status-lines.ts'
import { withAppFile } from '../with-app-file.ts'

/** What was found. */
interface Report {
  readonly app: string | null
  /** Everything that keeps a worker from starting. */
  readonly faults: readonly string[]
  /** Null: not looked at. */
  readonly schema: SchemaStatus | null
  /** Why the database could not be looked at. */
  readonly unreachable: string | null
}

/** Would a worker of this app start here? For a build, with `--no-database`, and before a deploy. */
export const check = command({
  name: 'check',
  description: 'Report everything that is wrong with the app, and whether the database fits it',
  args: {
    file: { type: 'positional', required: false, description: 'App file' },
    'no-database': { type: 'boolean', description: 'Leave the database alone' },
  },
  async run({ args, output }) {
    // citty reads `--no-database` as the option `database`, denied.
    const isDenied = (args.database as unknown) === false
    const named = isDenied ? { ...args, database: undefined } : args
    const report = await examine(async () => await openApp(withAppFile(named)), !isDenied)
    output.print(report, () => lines(report, output))
    const { length } = report.faults
    if (length > 0) throw new CliError(`${length} ${length === 1 ? 'fault' : 'faults'}; see above`)
  },
})

async function examine(open: () => Promise<App>, looksAtDatabase: boolean): Promise<Report> {
  let app: App
  try {
    app = await open()
  } catch (error) {
    const faults = faultsOf(error)
    if (faults === undefined) throw error
    return { app: null, faults, schema: null, unreachable: null }
  }
  const nothing = { app: app.name, faults: [], schema: null, unreachable: null }
  try {
    if (!looksAtDatabase) return nothing
    const schema = await schemaStatus({ ...app.internals.database, prepare: false })
    const fits = schema.state === 'current' || schema.state === 'newer'
    const fault = `schema "${schema.name}" is ${schemaSentences[schema.state]}`
    return { ...nothing, schema, faults: fits ? [] : [fault] }
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    return { ...nothing, unreachable: error.message }
  } finally {
    await app.close()
  }
}

/** What is wrong with the declaration; `undefined` if the error is about something else. */
function faultsOf(error: unknown): readonly string[] | undefined {
  if (error instanceof CompositionError) return error.faults
  return error instanceof InvalidArgumentError ? [error.message] : undefined
}

function lines({ app, faults, schema, unreachable }: Report, output: Output): readonly string[] {
  const version = schema && `schema "${oneLine(schema.name)}": version ${schema.version ?? 'none'}`
  return [
    ...(app === null ? [] : [output.heading(app)]),
    ...faults.map((fault) => `- ${oneLine(fault)}`),
    ...(app !== null && faults.length === 0 ? ['the declaration is sound'] : []),
    ...(version === null ? [] : [version]),
    ...(unreachable === null ? [] : [`the database was not looked at: ${oneLine(unreachable)}`]),
  ]
}
