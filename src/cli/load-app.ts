import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { App } from '../app/app.ts'
import { HoldfastError } from '../base/errors.ts'
import { usageError } from './cli-error.ts'
import { looksLikeAddress } from './secrets.ts'

const DEFAULT_FILES = ['app.ts', 'app.js', 'app.mts', 'app.mjs']

/** The app file to use: the one named, or the one in this folder; `undefined` if there is none. */
export function findAppFile(named: string | undefined): string | undefined {
  if (named === undefined) return DEFAULT_FILES.find((file) => fs.existsSync(file))
  if (looksLikeAddress(named))
    throw usageError('this is an address, where an app file was expected; pass it as --database')
  if (!fs.existsSync(named)) throw usageError(`there is no app file "${named}"; check the path`)
  return named
}

export interface LoadOptions {
  /** Called with the address of each module that is loaded. Default: nobody is told. */
  readonly onImport?: (url: string) => void
}

/**
 * Loads an app file, TypeScript or JavaScript, and gives its default export.
 *
 * TypeScript is loaded by tsx, registered for the whole process and without a namespace: the file's
 * `import 'holdfast'` is then the same module as ours, and its App our App (docs/decisions/0007-tsx-loads-app-files.md).
 *
 * @throws {CliError} The file cannot be loaded, or its default export is not made by `defineApp`.
 * @throws {CompositionError} The application cannot work as declared.
 */
export async function loadApp(file: string, options: LoadOptions = {}): Promise<App> {
  const full = path.resolve(file)
  const isTypeScript = /\.[cm]?tsx?$/.test(full)
  if (isTypeScript) requireModule(full, file)
  if (isTypeScript || options.onImport) {
    const { register } = await import('tsx/esm/api')
    register(options)
  }
  let loaded: { readonly default?: unknown }
  try {
    loaded = (await import(pathToFileURL(full).href)) as typeof loaded
  } catch (error) {
    if (isOurs(error)) throw error
    throw usageError(`the app file "${file}" could not be loaded; correct this:`, { cause: error })
  }
  return requireApp(loaded.default, file)
}

function requireApp(exported: unknown, file: string): App {
  if (exported instanceof App) return exported
  const name = typeof exported === 'object' && exported !== null ? exported.constructor?.name : undefined
  if (name === 'App' && 'composition' in (exported as object))
    throw usageError(
      `"${file}" imports another copy of holdfast than the one this command belongs to; ` +
        'run the command of its own project: npx holdfast',
    )
  throw usageError(
    `"${file}" has no application as its default export; end it with: export default defineApp({ … })`,
  )
}

/** An error of ours, or of another copy of ours, which says by itself what to correct. */
function isOurs(error: unknown): boolean {
  return error instanceof HoldfastError
}

/** In a CommonJS package tsx would give the file another instance of this package. */
function requireModule(full: string, file: string): void {
  if (!/\.tsx?$/.test(full)) return
  for (let folder = path.dirname(full); ; folder = path.dirname(folder)) {
    const manifest = path.join(folder, 'package.json')
    if (fs.existsSync(manifest)) {
      const { type } = JSON.parse(fs.readFileSync(manifest, 'utf8')) as { readonly type?: string }
      if (type === 'module') return
      break
    }
    if (folder === path.dirname(folder)) break
  }
  throw usageError(
    `"${file}" would be loaded as CommonJS; put "type": "module" into its package.json, or name it ${path.basename(file).replace(/\.(tsx?)$/, '.m$1')}`,
  )
}
