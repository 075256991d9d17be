import { check, finish, vitest } from './checks.mjs'

/** What `npm test` runs. */

// First: examples and benchmarks import the package by its name, and so what was built.
check('build', ['node', 'scripts/build.mjs'])
// The wrong programs of `test/types/` are among the files: a line that ought to fail and compiles is an error.
check('typecheck', ['tsc', '-p', 'tsconfig.json', '--noEmit'])
check('lint', ['oxlint', '--type-aware', '--quiet'], ['biome', 'check', '.'])
vitest('tests on PostgreSQL 18', ['!system'])
for (const version of ['14', '16']) {
  vitest(`tests on PostgreSQL ${version}`, ['conformance', 'integration'], { HOLDFAST_POSTGRES: version })
}
finish()
