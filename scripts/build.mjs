import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** Compiles `src/` to `dist/`, from nothing each time, so that no file of a removed source stays. */

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const dist = path.join(root, 'dist')

fs.rmSync(dist, { recursive: true, force: true })
const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})
if (status !== 0) process.exit(status ?? 1)
makeCommand(path.join(dist, 'cli/main.js'))

/**
 * Makes `file` a command of its own; npm links to it as it is.
 * @param {string} file
 */
function makeCommand(file) {
  if (!fs.existsSync(file)) return
  const text = fs.readFileSync(file, 'utf8')
  if (!text.startsWith('#!')) fs.writeFileSync(file, `#!/usr/bin/env node\n${text}`)
  fs.chmodSync(file, 0o755)
}
