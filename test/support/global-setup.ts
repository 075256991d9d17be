import type { TestProject } from 'vitest/node'
import { type PostgresVersion, postgresVersions } from '../../scripts/postgres-binaries.ts'
import { type PostgresServer, startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Address of the server that `createDatabase` uses. */
    postgresUrl: string
    /** Addresses by major version; all of 14, 16 and 18 in project `matrix` only. */
    postgresUrls: Readonly<Record<string, string>>
  }
}

/**
 * Servers shared by all projects of a run. Vitest loads this file anew for each project, so they hang on
 * `globalThis`; the last project that is done ends them.
 */
interface Shared {
  users: number
  readonly servers: Map<PostgresVersion, Promise<PostgresServer>>
}

const key = Symbol.for('holdfast.test.servers')
const place = globalThis as { [key]?: Shared }

/** Server of this run: 18, or what HOLDFAST_POSTGRES says (14, 16, 18). */
function chosenVersion(): PostgresVersion {
  const wanted = process.env['HOLDFAST_POSTGRES'] ?? '18'
  const version = postgresVersions.find((known) => String(known) === wanted)
  if (version === undefined)
    throw new Error(`HOLDFAST_POSTGRES is ${wanted}; it can be ${postgresVersions.join(', ')}`)
  return version
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const chosen = chosenVersion()
  const versions = project.name === 'matrix' ? postgresVersions : [chosen]
  place[key] ??= { users: 0, servers: new Map() }
  const shared = place[key]
  shared.users += 1
  const urls: Record<string, string> = {}
  for (const version of versions) urls[version] = (await serverOf(shared, version)).url()
  project.provide('postgresUrls', urls)
  project.provide('postgresUrl', urls[chosen] ?? '')
  return async () => {
    shared.users -= 1
    if (shared.users > 0) return
    const servers = [...shared.servers.values()]
    shared.servers.clear()
    for (const server of servers) await (await server).stop()
  }
}

function serverOf(shared: Shared, version: PostgresVersion): Promise<PostgresServer> {
  let server = shared.servers.get(version)
  if (server === undefined) {
    server = startPostgres({ version, settings: { ...volatileSettings, max_connections: 300 } })
    shared.servers.set(version, server)
  }
  return server
}
