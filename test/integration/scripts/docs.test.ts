import fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { scriptLines } from '../../../src/cli/script-output.ts'
import {
  type App,
  ScriptAbortedError,
  ScriptError,
  ScriptSyntaxError,
  ScriptThrownError,
} from '../../../src/index.ts'
import { functionNames } from '../../../src/scripts/functions.ts'
import { keywords } from '../../../src/scripts/keywords.ts'
import { codeBlocks, pages } from '../../contracts/markdown.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

/** A block ```holdfast is a script, one ```holdfast lines has one on each line; what each gives stands behind `# =>`. */
const blocks = pages()
  .flatMap(codeBlocks)
  .filter(({ info }) => info === 'holdfast' || info === 'holdfast lines')

interface Sample {
  readonly where: string
  readonly tenant: string
  readonly script: string
  readonly params: Readonly<Record<string, string>>
  readonly gives: string
}

const samples = blocks.flatMap(({ page, line, info, code }) => {
  const scripts = info === 'holdfast' ? [code] : code.split('\n')
  return scripts.map((text, index): Sample => {
    const [, script = '', gives = ''] = /^([\s\S]*?)#\s=>\s?(.*)$/.exec(text) ?? []
    const [, list = ''] = /^# params (.*)$/m.exec(script) ?? []
    const params = list
      .split(/,\s*/)
      .filter((pair) => pair !== '')
      .map((pair) => pair.split('='))
    return {
      where: `${page}:${line + index}`,
      tenant: page,
      script,
      params: Object.fromEntries(params) as Record<string, string>,
      gives,
    }
  })
})

describe('the reference of the script language', () => {
  const text = fs.readFileSync(new URL('../../../docs/reference/script-language.md', import.meta.url), 'utf8')
  const source = fs.readFileSync(new URL('../../../src/scripts/errors.ts', import.meta.url), 'utf8')
  const reasons = [...source.matchAll(/^ {2}\| '([a-z-]+)'$/gm)].map(([, reason]) => reason as string)

  it.each([
    ['keyword', [...keywords]],
    ['function', [...functionNames]],
    ['reason', reasons],
  ])('has every %s', (_, names) => {
    expect(names.length).toBeGreaterThan(20)
    expect(names.filter((name) => !new RegExp(`\`${name}[\`(]`).test(text))).toEqual([])
  })
})

describeEachApp('the scripts of the documentation', ({ open }) => {
  let opened: EachApp
  let app: App
  beforeAll(async () => {
    opened = await open({ worker: false, jobs: [] })
    app = opened.app
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  it('are there', () => {
    expect(samples.length).toBeGreaterThan(50)
    expect(samples.filter(({ script }) => script.trim() === '')).toEqual([])
  })

  it.each(samples)('$where gives $gives', async ({ script, params, tenant, gives }) => {
    expect(await outcomeOf(app, script, params, tenant)).toBe(gives)
  })
})

async function outcomeOf(
  app: App,
  script: string,
  params: Sample['params'],
  tenant: string,
): Promise<string> {
  try {
    const result = await app.script(script, params, { tenant })
    const lines = scriptLines(result, false)
    return result.values.length > 1 ? `[${lines.join(', ')}]` : lines.join('\n')
  } catch (error) {
    if (error instanceof ScriptSyntaxError)
      return `syntax error at line ${error.line}, column ${error.column}`
    if (error instanceof ScriptError) return `error ${error.reason} in line ${error.line}`
    if (error instanceof ScriptThrownError) return `throws ${error.text} in line ${error.line}`
    if (error instanceof ScriptAbortedError) return `aborted by ${error.reason} in line ${error.line}`
    throw error
  }
}
