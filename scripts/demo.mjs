import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { register } from 'tsx/esm/api'

// Runs examples/shop on the package as its users get it, building it first if its sources are newer.
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

if (!isBuilt()) {
  const build = spawnSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit', cwd: root })
  if (build.status !== 0) process.exit(1)
}

// In this process, not in a child: so Ctrl-C and exit codes need nobody to pass them on.
register()
await import('../examples/shop/main.ts')
