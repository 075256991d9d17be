import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

/** Tests on a server of PostgreSQL, which `test/support/global-setup.ts` starts once for all of them. */
function onServer(
  name: string,
  include: readonly string[],
  before: readonly string[] = [],
): TestProjectInlineConfiguration {
  return {
    test: {
      ...common,
      name,
      include: [...include],
      exclude: [
        ...(name === 'matrix' ? [] : ['test/**/*.matrix.test.ts']),
        ...(name === 'integration' ? [TESTING] : []),
      ],
      globalSetup: [...before, 'test/support/global-setup.ts'],
      testTimeout: 90_000,
      hookTimeout: 120_000,
    },
  }
}

/** Of the test kit, whose database is in the process: the same for every version of a server. */
const TESTING = 'test/integration/testing/**/*.test.ts'

const common = { environment: 'node', pool: 'forks' } as const

export default defineConfig({
  test: {
    ...common,
    // Two cores: more workers only make time-bound tests late.
    maxWorkers: 2,
    projects: [
      {
        test: {
          ...common,
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/histories/**/*.test.ts', 'bench/**/*.test.ts'],
          testTimeout: 30_000,
        },
      },
      onServer('support', ['test/support/*.test.ts']),
      onServer('conformance', ['test/conformance/**/*.test.ts']),
      // Installs Prisma first, in a folder of its own.
      onServer('prisma', ['test/prisma/*.test.ts'], ['test/prisma/install.ts']),
      onServer('integration', ['test/integration/**/*.test.ts']),
      onServer('testing', [TESTING]),
      onServer('faults', ['test/faults/**/*.test.ts']),
      onServer('regression', ['test/regression/**/*.test.ts']),
      onServer('contracts', ['test/contracts/**/*.test.ts']),
      onServer('e2e', ['test/e2e/**/*.test.ts']),
      onServer('matrix', ['test/**/*.matrix.test.ts']),
      // Needs Debian packages and root: `npm run test:system`.
      onServer('system', ['test/system/**/*.test.ts']),
    ],
  },
})
