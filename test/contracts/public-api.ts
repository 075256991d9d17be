import fs from 'node:fs'
import path from 'node:path'
import { root } from '../support/migrated.ts'

/** One public name of a package entry, and where it is declared. */
export interface PublicName {
  readonly name: string
  readonly kind: 'type' | 'value'
  /** Path of the declaring file, from the repository's root. */
  readonly file: string
  /** Its name there. */
  readonly declaredAs: string
}

export interface Entry {
  /** As users import it: `holdfast`, `holdfast/testing`. */
  readonly specifier: string
  /** Path of its source, from the repository's root. */
  readonly file: string
}

/** Entries of package.json whose code is ours, with the sources they are built from. */
export function packageEntries(): Entry[] {
  const { name, exports } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    name: string
    exports: Readonly<Record<string, string | { readonly default: string }>>
  }
  return Object.entries(exports).flatMap(([key, value]) => {
    const target = typeof value === 'string' ? value : value.default
    if (!target.endsWith('.js')) return []
    const file = target.replace(/^\.\/dist\//, 'src/').replace(/\.js$/, '.ts')
    return [{ specifier: path.posix.join(name, key), file }]
  })
}

/** The names that an entry exports, in order of the alphabet. `export *` is followed one file far, no further. */
export function publicNames(entry: string): PublicName[] {
  const text = fs.readFileSync(path.join(root, entry), 'utf8')
  const whole = [...text.matchAll(/^export\s*\*\s*from\s*['"]([^'"]+)['"]/gm)].flatMap(([, target = '']) => {
    const file = path.posix.join(path.posix.dirname(entry), target)
    const declared = fs.readFileSync(path.join(root, file), 'utf8')
    if (/^export\s*[*{]/m.test(declared)) throw new Error(`${file} passes on the names of another file`)
    return declarations(file, declared)
  })
  return [...whole, ...reExports(entry, text), ...declarations(entry, text)].sort(byName)
}

function byName(a: PublicName, b: PublicName): number {
  return a.name < b.name ? -1 : 1
}

function reExports(entry: string, text: string): PublicName[] {
  const statements = text.matchAll(/^export\s+(type\s+)?\{([^}]*)\}\s*(?:from\s*['"]([^'"]+)['"])?/gm)
  return [...statements].flatMap(([, allTypes, list = '', from]) =>
    list
      .replace(/\/\/.*$/gm, '')
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')
      .map((item): PublicName => {
        const [, type, declaredAs = '', alias] = /^(type\s+)?(\S+)(?:\s+as\s+(\S+))?$/.exec(item) ?? []
        return {
          name: alias ?? declaredAs,
          declaredAs,
          kind: allTypes !== undefined || type !== undefined ? 'type' : 'value',
          file: from === undefined ? entry : path.posix.join(path.posix.dirname(entry), from),
        }
      }),
  )
}

function declarations(file: string, text: string): PublicName[] {
  const pattern =
    /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(const|let|function\*?|class|enum|interface|type)\s+(\w+)/gm
  return [...text.matchAll(pattern)].map(([, keyword = '', name = '']) => ({
    name,
    declaredAs: name,
    kind: keyword === 'interface' || keyword === 'type' ? 'type' : 'value',
    file,
  }))
}
