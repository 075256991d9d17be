import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** Runs checks one after the other, all of them whatever fails, and counts by the tools' own reports. */

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const bin = path.join(root, 'node_modules/.bin')

const counts = { passed: 0, failed: 0, skipped: 0 }
/** @type {string[]} */
const failures = []

/**
 * One check, made of commands that must all end with 0.
 * @param {string} name
 * @param {...readonly string[]} commands Each a program of `node_modules/.bin`, or `node`, with its arguments.
 */
export function check(name, ...commands) {
  const failed = timed(name, () => commands.filter(([program = '', ...args]) => run(program, args) !== 0))
  count(failed.length === 0 ? { passed: 1 } : { failed: 1 }, name)
}

/**
 * Tests of vitest projects.
 * @param {string} name
 * @param {readonly string[]} projects
 * @param {Readonly<Record<string, string>>} [env]
 */
export function vitest(name, projects, env = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-tests-'))
  const file = path.join(folder, 'report.json')
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
  const args = [
    'run',
    '--passWithNoTests',
    ...reporters,
    ...projects.map((project) => `--project=${project}`),
  ]
  const status = timed(name, () => run('vitest', args, env))
  const report = readReport(file, status)
  count(report, name)
  failures.push(...report.failures)
  fs.rmSync(folder, { recursive: true })
}

/** Prints what failed and, as the last line, the sum; sets the exit code by it. */
export function finish() {
  for (const failure of failures) console.log(`failed: ${failure}`)
  const { passed, failed, skipped } = counts
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  process.exitCode = failed > 0 ? 1 : 0
}

/**
 * @param {{ passed?: number, failed?: number, skipped?: number }} more
 * @param {string} name
 */
export function count(more, name) {
  counts.passed += more.passed ?? 0
  counts.failed += more.failed ?? 0
  counts.skipped += more.skipped ?? 0
  if ((more.failed ?? 0) > 0) failures.push(`${name} (${more.failed})`)
}

/**
 * Counts and failures of a vitest report. What no test accounts for counts as one failure: a file that could not be loaded,
 * an error outside of the tests, a report that is missing.
 * @param {string} file
 * @param {number} status
 */
function readReport(file, status) {
  if (!fs.existsSync(file)) return { failed: status === 0 ? 0 : 1, failures: [] }
  /** @type {Report} */
  const report = JSON.parse(fs.readFileSync(file, 'utf8'))
  const failures = report.testResults
    .filter(({ status: outcome }) => outcome === 'failed')
    .flatMap(({ name, message, assertionResults }) => {
      const tests = assertionResults.filter((result) => result.status === 'failed')
      const where = path.relative(root, name)
      return tests.length === 0
        ? [`${where}: ${brief(message)}`]
        : tests.map((test) => `${where}: ${test.fullName}\n  ${brief(test.failureMessages.join('\n'))}`)
    })
  return {
    passed: report.numPassedTests,
    failed: failures.length === 0 && status !== 0 ? 1 : failures.length,
    skipped: report.numPendingTests + report.numTodoTests,
    failures,
  }
}

/**
 * The part of a vitest report that is read here.
 * @typedef {object} Report
 * @property {number} numPassedTests
 * @property {number} numPendingTests
 * @property {number} numTodoTests
 * @property {{ name: string, status: string, message: string, assertionResults:
 *   { status: string, fullName: string, failureMessages: string[] }[] }[]} testResults
 */

/**
 * The first lines of a message: what a log that is cut to its end still has to tell.
 * @param {string} message
 */
function brief(message) {
  return message.split('\n').slice(0, 12).join('\n  ')
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 * @param {Readonly<Record<string, string>>} [env]
 */
function run(program, args, env = {}) {
  const command = program === 'node' ? process.execPath : path.join(bin, program)
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  })
  if (error) console.log(String(error))
  return status ?? 1
}

/**
 * @template T
 * @param {string} name
 * @param {() => T} work
 */
function timed(name, work) {
  console.log(`\n── ${name}`)
  const before = performance.now()
  const result = work()
  console.log(`── ${name}: ${((performance.now() - before) / 1_000).toFixed(1)} s`)
  return result
}
