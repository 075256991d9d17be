import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../support/migrated.ts'
import { packageEntries, publicNames } from './public-api.ts'
import { withoutComments } from './source.ts'

/** A public declaration as text. */
interface Declaration {
  readonly name: string
  readonly keyword: string
  /** The TSDoc comment right above it; empty if there is none. */
  readonly doc: string
  readonly body: string
}

function declarationOf(text: string, name: string): Declaration | undefined {
  const pattern = new RegExp(
    `^(?:export )?(?:declare )?(?:abstract )?(?:async )?(const|function\\*?|class|interface|type|enum) ${name}\\b`,
    'm',
  )
  const found = pattern.exec(text)
  if (!found) return undefined
  const rest = text.slice(found.index)
  // A declaration ends with the next line that starts with neither blank nor bracket.
  const end = rest.search(/\n(?=\/\*\*|export |function |class |interface |type |const |async |abstract )/)
  const doc = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.exec(text.slice(0, found.index))?.[0] ?? ''
  return { name, keyword: found[1] ?? '', doc, body: end < 0 ? rest : rest.slice(0, end) }
}

/** What is missing from the comments of a declaration. */
function problems(declaration: Declaration): string[] {
  const { name, keyword, doc, body } = declaration
  if (doc === '') return [`${name} has no comment`]
  if (keyword.startsWith('function')) return problemsOfFunction(declaration)
  if (keyword === 'interface' && name.endsWith('Options')) return problemsOfOptions(name, body)
  return []
}

function problemsOfFunction({ name, doc, body }: Declaration): string[] {
  const canThrow = /\bthrow\b|\bcheck[A-Z]\w*\(|\bassert\w*\(/.test(withoutComments(body))
  return canThrow && !doc.includes('@throws') ? [`${name} can throw, and its comment has no @throws`] : []
}

function problemsOfOptions(name: string, body: string): string[] {
  const properties = body.matchAll(
    /((?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/)?)\s*^ {2}(?:readonly )?(\w+)(\??)(?:: |\()(.*)$/gm,
  )
  return [...properties].flatMap(([, doc = '', property = '', optional, type = '']) => {
    const at = `${name}.${property}`
    if (doc === '') return [`${at} has no comment`]
    return [
      ...(optional === '?' && !/default|left out/i.test(doc) ? [`${at} does not say its default`] : []),
      ...(property.endsWith('Ms') && !/milliseconds?/.test(doc) ? [`${at} does not say its unit`] : []),
      ...(property.endsWith('Bytes') && !/bytes?/.test(doc) ? [`${at} does not say its unit`] : []),
      ...(isUnnamedDuration(property, type) ? [`${at} is a time without its unit in the name`] : []),
    ]
  })
}

function isUnnamedDuration(property: string, type: string): boolean {
  return /(timeout|interval|delay|ttl|duration|lease|grace)$/i.test(property) && /^number\b/.test(type)
}

describe('public names', () => {
  it.each(packageEntries())('of $specifier are all explained where they are declared', ({ file: entry }) => {
    const names = publicNames(entry)
    const found = names.flatMap(({ declaredAs, file }) => {
      const declaration = declarationOf(fs.readFileSync(path.join(root, file), 'utf8'), declaredAs)
      const said = declaration ? problems(declaration) : [`${declaredAs} is not declared there`]
      return said.map((problem) => `${file}: ${problem}`)
    })
    expect(names.length).toBeGreaterThan(0)
    expect(found).toEqual([])
  })
})

describe('the check itself', () => {
  const problemsIn = (text: string, name: string) => {
    const declaration = declarationOf(text, name)
    return declaration ? problems(declaration) : ['not found']
  }

  it('sees a missing comment, and one that belongs to something else', () => {
    expect(problemsIn('export function a() {}', 'a')).toEqual(['a has no comment'])
    expect(problemsIn('/** Of b. */\nconst b = 1\nexport function a() {}', 'a')).toEqual(['a has no comment'])
    expect(problemsIn('/** Does it. */\nexport function a() {}', 'a')).toEqual([])
  })

  it('sees a function that throws without saying so', () => {
    const body = 'export async function a() {\n  checkName(1)\n}\n'
    expect(problemsIn(`/** Does it. */\n${body}`, 'a')).toHaveLength(1)
    expect(problemsIn(`/** Does it.\n * @throws {E} Bad name. */\n${body}`, 'a')).toEqual([])
    expect(
      problemsIn(`/** Does it. */\nexport function a() {}\n\nfunction b() { throw new E() }`, 'a'),
    ).toEqual([])
  })

  it('sees options without comment, default or unit', () => {
    const options = (property: string) => `/** How. */\nexport interface AOptions {\n${property}\n}`
    expect(problemsIn(options('  readonly n?: number'), 'AOptions')).toEqual(['AOptions.n has no comment'])
    expect(problemsIn(options('  /** How many. */\n  readonly n?: number'), 'AOptions')).toHaveLength(1)
    expect(
      problemsIn(options('  /** How long. Default: 5. */\n  readonly waitMs?: number'), 'AOptions'),
    ).toHaveLength(1)
    expect(
      problemsIn(options('  /** How long. Default: 5. */\n  readonly timeout?: number'), 'AOptions'),
    ).toHaveLength(1)
    const fine = '  /** How long, in milliseconds. Default: 5. */\n  readonly waitMs?: number'
    expect(problemsIn(options(fine), 'AOptions')).toEqual([])
  })
})
