import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../support/migrated.ts'
import { readFiles } from './source.ts'

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')) as Manifest
const exactVersion = /^(npm:(@[\w-]+\/)?[\w-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/

/** Folders of a developer's machine: a path in them works for nobody else. */
const machinePath = /(?<![\w.:/$~-])\/(?:work|root|home|Users)\/[\w.-]+/

/** Files that are, or are to be, under version control. */
function ownFiles(): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard']
  const listed = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  if (listed.status === 0 && listed.stdout !== '') {
    return listed.stdout.split('\n').filter((file) => file !== '' && fs.existsSync(path.join(root, file)))
  }
  // A copy without its history, such as an unpacked archive.
  const ignored = /(^|\/)(node_modules|dist|coverage|\.git|\.holdfast)\//
  return readFiles('.', (file) => !ignored.test(file)).map(({ file }) => file)
}

function linesWithMachinePaths(file: string, text: string): string[] {
  return text
    .split('\n')
    .flatMap((line, index) =>
      machinePath.test(line) ? [`${file}:${index + 1}: ${line.trim().slice(0, 120)}`] : [],
    )
}

/** Statements on the sessions of the whole server that do not say of which database or process. */
function looksAtEverybody(text: string): string[] {
  const statements = text.match(/from pg_stat_activity\s+(?:\w+\s+)?where\s+[^`;]{0,40}/g) ?? []
  return statements.filter((statement) => !/where\s+(?:\w+\.)?(datname =|pid =)/.test(statement))
}

describe('the repository', () => {
  it('has lock files that name no registry', () => {
    const locks = ownFiles().filter((file) => path.basename(file) === 'package-lock.json')
    expect(locks).toEqual(expect.arrayContaining(['package-lock.json', 'test/prisma/package-lock.json']))
    const named = locks.flatMap((file) =>
      fs
        .readFileSync(path.join(root, file), 'utf8')
        .split('\n')
        .filter((line) => line.includes('"resolved"'))
        .map((line) => `${file}: ${line.trim()}`),
    )
    expect(named).toEqual([])
  })

  it('names no folder of somebody’s machine', () => {
    const files = ownFiles()
    const found = files.flatMap((file) => {
      const bytes = fs.readFileSync(path.join(root, file))
      return bytes.includes(0) ? [] : linesWithMachinePaths(file, bytes.toString('utf8'))
    })
    expect(files.length).toBeGreaterThan(10)
    expect(found).toEqual([])
  })

  it('looks in its tests at the sessions of its own database only: others run beside it', () => {
    const found = readFiles(
      'test',
      (file) => file.endsWith('.ts') && !file.endsWith('/repository.test.ts'),
    ).map(({ file, text }) => [file, looksAtEverybody(text)])
    expect(found.filter(([, statements]) => statements?.length)).toEqual([])
    expect(found.length).toBeGreaterThan(100)
  })

  it('pins every dependency exactly', () => {
    const all = { ...manifest.dependencies, ...manifest.devDependencies }
    const loose = Object.entries(all).filter(([, version]) => !exactVersion.test(version))
    expect(loose).toEqual([])
  })

  it('gives a reason for every dependency at run time', () => {
    const decisions = readFiles('docs/decisions', (file) => file.endsWith('.md'))
    const unexplained = Object.keys(manifest.dependencies).filter(
      (name) => !decisions.some(({ text }) => text.includes(`\`${name}\``)),
    )
    expect(unexplained).toEqual([])
  })
})

describe('the checks themselves', () => {
  it('see machine paths, and not what only looks like one', () => {
    const folder = ['', 'root', 'project'].join('/')
    expect(linesWithMachinePaths('a.md', `see ${folder}/src`)).toHaveLength(1)
    expect(linesWithMachinePaths('a.md', `see https://example.com${folder} and docs${folder}`)).toEqual([])
  })

  it('see a look at everybody’s sessions', () => {
    expect(looksAtEverybody("select from pg_stat_activity where wait_event = 'PgSleep'")).toHaveLength(1)
    expect(looksAtEverybody('select from pg_stat_activity\n where datname = current_database()')).toEqual([])
    expect(looksAtEverybody('select from pg_stat_activity where pid = $1')).toEqual([])
  })

  it('see loose versions', () => {
    for (const loose of ['^1.2.3', '~1.2.3', '1.x', '*', 'latest', '>=1.2.3'])
      expect(loose).not.toMatch(exactVersion)
    for (const exact of ['1.2.3', '18.4.0-beta.17', 'npm:@a/b@1.2.3']) expect(exact).toMatch(exactVersion)
  })
})
