import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from './bundle.mjs'

/**
 * Builds `dist/` from `src/`: declarations by the compiler, which checks, and JavaScript by scripts/bundle.mjs. From
 * nothing each time, so that no file of a removed source stays. The new folder takes the place of the old one when it is
 * whole: programs that run from `dist` find their files at any moment.
 */

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const dist = path.join(root, 'dist')

const next = `${dist}.${process.pid}`
const old = `${next}.old`

const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', next], {
  cwd: root,
  stdio: 'inherit',
})
if (status !== 0) {
  fs.rmSync(next, { recursive: true, force: true })
  process.exit(status ?? 1)
}
bundle(next)
makeCommand(path.join(next, 'cli/main.js'))
if (fs.existsSync(dist)) fs.renameSync(dist, old)
fs.renameSync(next, dist)
fs.rmSync(old, { recursive: true, force: true })

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
