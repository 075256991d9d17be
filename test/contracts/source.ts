import fs from 'node:fs'
import path from 'node:path'
import { root } from '../support/migrated.ts'

/** A file of the library, by its path from the repository's root. */
export interface SourceFile {
  readonly file: string
  readonly text: string
}

export interface ImportOf {
  /** As written: `../base/errors.ts`, `pg`, `node:fs`. */
  readonly target: string
  /** True if nothing of it is left at run time. */
  readonly typeOnly: boolean
}

/** All files below `folder` whose names `accepts` takes, in order. */
export function readFiles(folder: string, accepts: (file: string) => boolean): SourceFile[] {
  const names = fs.readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
  return names
    .map((name) => path.posix.join(folder, name))
    .filter((file) => accepts(file) && fs.statSync(path.join(root, file)).isFile())
    .sort()
    .map((file) => ({ file, text: fs.readFileSync(path.join(root, file), 'utf8') }))
}

/** The library itself: `src/` without tests. */
export function librarySources(): SourceFile[] {
  return readFiles('src', (file) => file.endsWith('.ts') && !/\.(test|test-d)\.ts$/.test(file))
}

/** Imports and re-exports of a file, by text: comments are left out first. */
export function importsOf({ text }: SourceFile): ImportOf[] {
  const code = withoutComments(text)
  const imports = code.matchAll(/^import\s+(type\s)?(?:([^'"`;()=]*?)\s*from\s*)?['"]([^'"]+)['"]/gm)
  const exports = code.matchAll(/^export\s+(type\s)?(\{[^}]*\}|\*[^'"`;()=]*?)\s*from\s*['"]([^'"]+)['"]/gm)
  const found = [...imports, ...exports].map(([, type, names = '', target = '']) => ({
    target,
    typeOnly: type !== undefined || onlyTypes(names),
  }))
  const dynamic = [...code.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g)]
  return [...found, ...dynamic.map(([, target = '']) => ({ target, typeOnly: isTypeQuery(code, target) }))]
}

function onlyTypes(names: string): boolean {
  const list = /^\s*\{([^}]*)\}\s*$/.exec(names)?.[1]
  if (list === undefined) return false
  const items = list.split(',').filter((name) => name.trim() !== '')
  return items.length > 0 && items.every((name) => /^\s*type\s/.test(name))
}

/** `import('x').Y` names a type; `await import('x')` loads. */
function isTypeQuery(code: string, target: string): boolean {
  return !new RegExp(`(await|return|=>|=)\\s*import\\(\\s*['"]${target.replace(/[/.@]/g, '\\$&')}`).test(code)
}

/** Block and line comments replaced by nothing; the number of lines stays. */
export function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/(^|[\s;{}()])\/\/.*$/gm, '$1')
}
