import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

/**
 * `npm run bench`: installs the peers (their own lock, apart from ours) and Redis, builds the package, and runs
 * bench/run.ts. Arguments are passed on; `npm run bench -- --help` lists them. With `coordination` as the first one it runs
 * bench/coordination/run.ts, which measures locks, keys and scripts.
 */
const root = path.join(import.meta.dirname, '..')
const bench = path.join(root, 'bench')

if (!process.argv.includes('--help')) {
  installPeers()
  installRedis()
  build()
  buildChildren()
}
const [first, ...others] = process.argv.slice(2)
if (first === 'coordination')
  exitWith(run('npx', ['tsx', path.join(bench, 'coordination/run.ts'), ...others]))
exitWith(run('npx', ['tsx', path.join(bench, 'run.ts'), ...process.argv.slice(2)]))

/** Only when the lock changed: the record that npm leaves in node_modules is older then. */
function installPeers() {
  const installed = path.join(bench, 'node_modules/.package-lock.json')
  const lock = path.join(bench, 'package-lock.json')
  if (!fs.existsSync(installed) || fs.statSync(installed).mtimeMs < fs.statSync(lock).mtimeMs) {
    must('npm', ['ci', '--prefix', bench])
    fs.utimesSync(installed, new Date(), new Date())
  }
  // The adapter imports the package as a user does.
  const link = path.join(bench, 'node_modules/holdfast')
  if (!fs.existsSync(link)) fs.symlinkSync(root, link, 'dir')
}

/** For BullMQ. A machine without apt leaves its contenders out, and the report says so. */
function installRedis() {
  if (spawnSync('redis-server', ['--version']).status === 0) return
  const install = ['install', '-y', '--no-install-recommends', 'redis-server']
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  if (spawnSync('apt-get', install, { env }).status === 0) return
  spawnSync('apt-get', ['update'], { env })
  if (spawnSync('apt-get', install, { env }).status !== 0)
    console.error('redis-server could not be installed')
}

function build() {
  if (fs.existsSync(path.join(root, 'scripts/build.mjs'))) must('npm', ['run', '--silent', 'build'])
}

/** The measured processes run JavaScript: Node's own stripping of types would take 33 MB and be counted as theirs. */
function buildChildren() {
  must('npx', ['tsc', '-p', path.join(bench, 'tsconfig.build.json')])
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 */
function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  return status ?? 1
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 */
function must(command, args) {
  const status = run(command, args)
  if (status !== 0) exitWith(status)
}

/** @param {number} status */
function exitWith(status) {
  process.exit(status)
}
