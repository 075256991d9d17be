import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

const folder = import.meta.dirname
/** Where `schema.prisma` says the client goes. */
export const generatedClient = path.join(folder, '.holdfast/client/client.ts')

/** Installs Prisma when its lock has changed, and makes its client: what comes before the tests of this project. */
export function setup(): void {
  const installed = path.join(folder, 'node_modules/.package-lock.json')
  if (isOlder(installed, 'package-lock.json')) {
    // Under `npm test` our own settings come along as environment. Prisma's command has a part that wants a newer
    // Node, which making the client does not use; and its scripts would download.
    run('npm', ['ci', '--engine-strict=false', '--ignore-scripts'])
    fs.utimesSync(installed, new Date(), new Date())
  }
  if (!isOlder(generatedClient, 'package-lock.json') && !isOlder(generatedClient, 'schema.prisma')) return
  run(process.execPath, ['node_modules/prisma/build/index.js', 'generate', '--schema', 'schema.prisma'])
}

function isOlder(file: string, source: string): boolean {
  const made = fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
  return made < fs.statSync(path.join(folder, source)).mtimeMs
}

function run(command: string, args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    // Prisma would download an engine that only its migrations need, and ask for newer versions.
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' },
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${error ?? `${stdout}${stderr}`}`)
}
