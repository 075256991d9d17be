import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../support/migrated.ts'
import { importsOf, librarySources, type SourceFile, withoutComments } from './source.ts'

/** What each room of `src/` may import besides itself. A room is a folder, or a file right in `src/`. */
const base = ['base']
const driver = [...base, 'driver']
const areas = [
  'attempts',
  'jobs',
  'effects',
  'resources',
  'producers',
  'schedules',
  'locks',
  'keys',
  'sequences',
  'scripts',
  'tenants',
  'migrations',
]
const floor2 = [...driver, ...areas]
const floor3 = [...floor2, 'adapters', 'app', 'worker', 'admin']

const mayImport: Readonly<Record<string, readonly string[]>> = {
  base: [],
  driver: base,
  adapters: driver,
  ...Object.fromEntries(areas.map((area) => [area, driver])),
  schedules: [...driver, 'jobs'],
  effects: [...driver, 'attempts'],
  resources: [...driver, 'effects'],
  // A job names its effects and resources, and its context has them, and what handlers coordinate by; an effect knows no job.
  jobs: [...driver, 'attempts', 'effects', 'resources', 'locks', 'keys', 'scripts', 'sequences'],
  producers: [...driver, 'effects', 'jobs'],
  scripts: [...driver, 'keys'],
  // An application builds its workers; a worker knows no application.
  app: [...floor2, 'adapters', 'worker'],
  worker: [...floor2, 'adapters'],
  // What the command and the dashboard share acts on an application.
  admin: [...floor2, 'app', 'worker'],
  testing: floor3,
  server: floor3,
  // It offers the crash test to whoever has no test suite of it.
  cli: [...floor3, 'testing'],
  'index.ts': floor3,
}

/** Only the command decides about the process it runs in. */
const mayEndProcess = ['cli']

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')) as Manifest
const packages = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })

function roomOf(file: string): string {
  return file.split('/')[1] ?? ''
}

function resolved(from: string, target: string): string {
  return path.posix.join(path.posix.dirname(from), target)
}

function climbs(sources: readonly SourceFile[]): string[] {
  return sources.flatMap((source) =>
    importsOf(source)
      .filter(({ target }) => target.startsWith('.'))
      .flatMap(({ target }) => {
        const from = roomOf(source.file)
        const to = roomOf(resolved(source.file, target))
        const allowed = [from, ...(mayImport[from] ?? [])]
        return allowed.includes(to) ? [] : [`${source.file} may not import ${target} (${from} → ${to})`]
      }),
  )
}

/** Cycles of what runs. Types may refer to each other: nothing of that is left, and floors hold for types too. */
function cycles(sources: readonly SourceFile[]): string[] {
  const edges = new Map(
    sources.map((source) => [
      source.file,
      importsOf(source)
        .filter(({ target, typeOnly }) => target.startsWith('.') && !typeOnly)
        .map(({ target }) => resolved(source.file, target)),
    ]),
  )
  const found: string[] = []
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): void => {
    const start = trail.indexOf(file)
    if (start >= 0) found.push([...trail.slice(start), file].join(' → '))
    if (start >= 0 || done.has(file)) return
    for (const next of edges.get(file) ?? []) visit(next, [...trail, file])
    done.add(file)
  }
  for (const file of edges.keys()) visit(file, [])
  return found
}

function unknownPackages(sources: readonly SourceFile[]): string[] {
  return sources.flatMap((source) =>
    importsOf(source)
      .filter(({ target, typeOnly }) => !typeOnly && !/^(\.|node:)/.test(target))
      .map(({ target }) => target.split('/', target.startsWith('@') ? 2 : 1).join('/'))
      .filter((name) => !packages.includes(name))
      .map((name) => `${source.file} imports ${name}, which package.json does not promise`),
  )
}

function endsProcess(sources: readonly SourceFile[]): string[] {
  const pattern = /process\.exit(Code)?\b|process\.(on|once|addListener|prependListener)\(\s*['"`]SIG/
  return sources
    .filter(({ file, text }) => !mayEndProcess.includes(roomOf(file)) && pattern.test(withoutComments(text)))
    .map(({ file }) => `${file} ends the process or catches signals`)
}

function passages(sources: readonly SourceFile[]): string[] {
  return sources
    .filter(({ file }) => path.posix.basename(file) === 'index.ts' && file !== 'src/index.ts')
    .map(({ file }) => `${file}: only src/index.ts is called index.ts`)
}

function unknownRooms(sources: readonly SourceFile[]): string[] {
  return sources
    .filter(({ file }) => !(roomOf(file) in mayImport))
    .map(({ file }) => `${file} is in no known room`)
}

describe('the library', () => {
  const sources = librarySources()

  it('has every file in a room of the table', () => {
    expect(sources.length).toBeGreaterThan(0)
    expect(unknownRooms(sources)).toEqual([])
  })

  it('imports downwards only', () => {
    expect(climbs(sources)).toEqual([])
  })

  it('has no cycle of imports', () => {
    expect(cycles(sources)).toEqual([])
  })

  it('has no index.ts besides the entry', () => {
    expect(passages(sources)).toEqual([])
  })

  it('uses no package at run time that package.json does not promise', () => {
    expect(unknownPackages(sources)).toEqual([])
  })

  it('ends the process and catches signals nowhere but in the command', () => {
    expect(endsProcess(sources)).toEqual([])
  })
})

describe('the checks themselves', () => {
  const source = (file: string, text: string): SourceFile => ({ file, text })

  it('see an import that climbs, however it is written', () => {
    for (const text of [
      `import { x } from '../jobs/enqueue.ts'`,
      `import {\n  x,\n  type Y,\n} from '../jobs/enqueue.ts'`,
      `import type { Y } from '../jobs/enqueue.ts'`,
      `import '../jobs/enqueue.ts'`,
      `export { x } from '../jobs/enqueue.ts'`,
      `const x = await import('../jobs/enqueue.ts')`,
    ]) {
      expect(climbs([source('src/driver/a.ts', text)])).toHaveLength(1)
    }
    expect(climbs([source('src/driver/a.ts', `// import '../jobs/enqueue.ts'`)])).toEqual([])
    expect(climbs([source('src/jobs/a.ts', `import { x } from '../driver/driver.ts'`)])).toEqual([])
  })

  it('see a cycle over three files', () => {
    const ring = [
      source('src/base/a.ts', `import './b.ts'`),
      source('src/base/b.ts', `import { c } from './c.ts'`),
      source('src/base/c.ts', `export { a } from './a.ts'`),
    ]
    expect(cycles(ring)).toEqual(['src/base/a.ts → src/base/b.ts → src/base/c.ts → src/base/a.ts'])
    expect(cycles([...ring.slice(0, 2), source('src/base/c.ts', `import type { A } from './a.ts'`)])).toEqual(
      [],
    )
  })

  it('see packages, exits, signals and index files', () => {
    expect(unknownPackages([source('src/base/a.ts', `import z from 'zod/mini'`)])).toHaveLength(1)
    expect(unknownPackages([source('src/base/a.ts', `const z = await import('@x/y/z')`)])).toHaveLength(1)
    expect(unknownPackages([source('src/base/a.ts', `import type { z } from 'zod'`)])).toEqual([])
    expect(endsProcess([source('src/worker/a.ts', `process.exit(1)`)])).toHaveLength(1)
    expect(endsProcess([source('src/worker/a.ts', `process.once( 'SIGTERM', stop)`)])).toHaveLength(1)
    expect(endsProcess([source('src/cli/a.ts', `process.once('SIGTERM', stop)`)])).toEqual([])
    expect(passages([source('src/jobs/index.ts', '')])).toHaveLength(1)
    expect(unknownRooms([source('src/utils/a.ts', '')])).toHaveLength(1)
  })
})
