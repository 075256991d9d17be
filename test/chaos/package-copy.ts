import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..')

/** One edit of a statement: `find` must be there exactly once, or the copy is refused. */
export interface Edit {
  /** Path from the root of the repository, of the TypeScript or SQL source. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

export interface PackageCopy {
  readonly dir: string
  readonly workerProgram: string
  readonly producerProgram: string
  readonly providerProgram: string
  /** A process of `test/histories`. */
  readonly historiesProgram: string
  /** The public entry, for `import()`. */
  readonly entry: string
}

/**
 * Compiles the library and the programs of chaos and histories to `dir`: what the run's processes load is one state of the
 * sources whatever is edited or built meanwhile, and a negative control is a copy with a statement edited.
 */
export function copyPackage(dir: string, edits: readonly Edit[] = []): PackageCopy {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
  const project = path.join(root, 'test/chaos/tsconfig.json')
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', project, '--outDir', dir], {
    cwd: root,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`the library does not compile:\n${stdout}`)
  fs.cpSync(path.join(root, 'sql'), path.join(dir, 'sql'), { recursive: true })
  fs.copyFileSync(path.join(root, 'package.json'), path.join(dir, 'package.json'))
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(dir, 'node_modules'), 'dir')
  for (const edit of edits) applyEdit(dir, edit)
  return {
    dir,
    workerProgram: path.join(dir, 'test/chaos/worker-program.js'),
    producerProgram: path.join(dir, 'test/chaos/producer-program.js'),
    providerProgram: path.join(dir, 'test/chaos/provider-program.js'),
    historiesProgram: path.join(dir, 'test/histories/worker-program.js'),
    entry: path.join(dir, 'src/index.js'),
  }
}

/** @throws {Error} The edit does not fit: the statement has changed, or moved. */
export function applyEdit(dir: string, { file, find, replace }: Edit): void {
  const target = path.join(dir, file.replace(/\.ts$/, '.js'))
  const text = fs.readFileSync(target, 'utf8')
  const times = text.split(find).length - 1
  if (times !== 1)
    throw new Error(`the control does not fit ${file} any more: "${find}" is there ${times} times`)
  fs.writeFileSync(
    target,
    text.replace(find, () => replace),
  )
}
