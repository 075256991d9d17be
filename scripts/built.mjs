import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** For whatever uses the package by its name, as its users do: examples and their tests. */

const root = fileURLToPath(new URL('..', import.meta.url))

/** @param {string} folder */
function newestMs(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return Math.max(0, ...files.map((file) => statSync(path.join(file.parentPath, file.name)).mtimeMs))
}

function isBuilt() {
  const built = path.join(root, 'dist', 'index.js')
  const sources = [path.join(root, 'src'), path.join(root, 'sql')]
  return existsSync(built) && Math.max(...sources.map(newestMs)) <= statSync(built).mtimeMs
}

/** Builds the package if its sources are newer; false if that failed. */
export function ensureBuilt() {
  if (isBuilt()) return true
  const build = spawnSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit', cwd: root })
  return build.status === 0
}
