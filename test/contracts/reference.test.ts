import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../support/migrated.ts'

function read(file: string): string {
  return fs.readFileSync(path.join(root, file), 'utf8')
}

/** What `page` does not name in inline code. */
function unnamed(names: readonly string[], page: string): readonly string[] {
  const text = read(page)
  return names.filter((name) => !text.includes(`\`${name}\``))
}

function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name)
}

/** The members of an interface, by the two blanks before them. */
function membersOf(file: string, name: string): string[] {
  const [, body = ''] = new RegExp(`interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)\\n\\}`).exec(read(file)) ?? []
  return matches(body, /^ {2}(?:readonly )?'?([\w.]+)'?\??[:(<]/gm)
}

describe('the reference pages', () => {
  it('have the limits of the code', () => {
    const script = ['scripts/docs-limits.mjs', '--check']
    const { status, stderr } = spawnSync(process.execPath, script, { cwd: root, encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status).toBe(0)
  })

  it('name every error, by class and by code', () => {
    const text = read('src/base/errors.ts') + read('src/effects/errors.ts') + read('src/sequences/errors.ts')
    const classes = matches(text, /^export (?:abstract )?class (\w+) extends HoldfastError/gm)
    const codes = matches(text, /^ {2}readonly code = '(\w+)'/gm)
    expect(classes.length).toBeGreaterThan(10)
    expect(codes).toHaveLength(classes.length)
    expect(unnamed([...classes, ...codes], 'docs/reference/errors.md')).toEqual([])
  })

  it('name every event', () => {
    const events = membersOf('src/base/events.ts', 'EventMap')
    expect(events.length).toBeGreaterThan(10)
    expect(unnamed(events, 'docs/reference/events.md')).toEqual([])
  })

  it.each([
    ['src/jobs/define-job.ts', 'JobOptions'],
    ['src/jobs/enqueue-options.ts', 'EnqueueOptions'],
    ['src/app/app-options.ts', 'AppOptions'],
    ['src/app/app-options.ts', 'WorkerOptions'],
    ['src/jobs/context.ts', 'JobContext'],
    ['src/jobs/context.ts', 'RunningJob'],
  ])('name every member of %s %s', (file, name) => {
    const members = membersOf(file, name)
    expect(members.length).toBeGreaterThan(3)
    const page = read('docs/reference/job-options.md')
    const missing = members.filter((member) => !new RegExp(`\`[^\`]*\\b${member}\\b[^\`]*\``).test(page))
    expect(missing).toEqual([])
  })

  it.each([
    ['enqueue', 8],
    ['assert_lock', 3],
  ])('name every parameter of holdfast.%s', (name, least) => {
    const migrations = fs.readdirSync(path.join(root, 'sql/migrations')).sort()
    const text = migrations.map((file) => read(`sql/migrations/${file}`)).join('\n')
    const declared = new RegExp(`create function :schema\\.${name}\\(([\\s\\S]*?)\\n\\) returns`)
    const [, parameters = ''] = declared.exec(text) ?? []
    const names = matches(parameters, /^ {2}(?:out )?(\w+) /gm)
    expect(names.length).toBeGreaterThan(least)
    expect(unnamed(names, 'docs/reference/sql.md')).toEqual([])
  })
})
