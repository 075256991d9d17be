import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'

const source = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../src')

/** What is imported by its address, or run: each stays a file of its own, under the name of its source. */
const ENTRIES = [
  'index.ts',
  'testing/testing.ts',
  'testing/kill/kill-program.ts',
  'cli/main.ts',
  'worker/heartbeat-thread.ts',
]

/**
 * Writes the package's JavaScript to `folder`: the entries, and in `chunks/` what they share, once. A few files load
 * three times as fast as a few hundred (docs/decisions/0023-few-files.md). Dependencies stay imports.
 *
 * @param {string} folder
 */
export function bundle(folder) {
  buildSync({
    entryPoints: ENTRIES.map((entry) => path.join(source, entry)),
    outbase: source,
    outdir: folder,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    sourcemap: true,
    logLevel: 'warning',
  })
}
