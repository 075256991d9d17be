import { expect, it, vi } from 'vitest'
import { createTestApp } from '../../../src/testing/testing.ts'
import { appOf, noted } from './jobs.ts'

vi.mock('@electric-sql/pglite', () => {
  throw new Error('Cannot find package')
})

it('loads without PGlite, and says what to install when it is needed', async () => {
  await expect(createTestApp(appOf([noted]))).rejects.toMatchObject({
    code: 'COMPOSITION',
    faults: [expect.stringContaining('npm i @electric-sql/pglite')],
  })
})
