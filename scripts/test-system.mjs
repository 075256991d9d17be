import { spawnSync } from 'node:child_process'
import { count, finish, vitest } from './checks.mjs'

/** What `npm run test:system` runs: tests that need Debian packages and root, which it installs itself. */

const packages = ['pgbouncer', 'faketime', 'libfaketime', 'iptables']

const missing = packages.filter((name) => !isInstalled(name))
if (missing.length === 0 || install(missing)) vitest('system tests', ['system'])
else count({ failed: 1 }, `installing ${missing.join(', ')}: run as root on Debian`)
finish()

/** @param {string} name */
function isInstalled(name) {
  const { stdout } = spawnSync('dpkg-query', ['-W', '--showformat=${Status}', name])
  return String(stdout).startsWith('install ok installed')
}

/** @param {readonly string[]} names */
function install(names) {
  return aptGet(['update', '-qq']) && aptGet(['install', '-y', '-qq', '--no-install-recommends', ...names])
}

/** @param {readonly string[]} args */
function aptGet(args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  return spawnSync('apt-get', args, { stdio: 'inherit', env }).status === 0
}
