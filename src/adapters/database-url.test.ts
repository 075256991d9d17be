import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createDriver } from './create-driver.ts'
import { readDatabase, splitHosts } from './database-url.ts'

describe('reading what was passed as database', () => {
  it.each([
    ['postgres://u:p@h:5432/db', { kind: 'pg', url: 'postgres://u:p@h:5432/db' }],
    [' postgresql:///db?host=/tmp ', { kind: 'pg', url: 'postgresql:///db?host=/tmp' }],
    ['pglite:./dir', { kind: 'pglite', folder: './dir' }],
    ['pglite:/abs/dir', { kind: 'pglite', folder: '/abs/dir' }],
    ['pglite:///abs/dir', { kind: 'pglite', folder: '/abs/dir' }],
    ['pglite:memory:', { kind: 'pglite', folder: undefined }],
  ])('reads %s', (database, expected) => {
    expect(readDatabase(database)).toEqual(expected)
  })

  it('splits several hosts and drops target_session_attrs', () => {
    expect(
      splitHosts('postgres://u:p%40@h1:1,[::1]:2,h3/db?target_session_attrs=read-write&sslmode=disable'),
    ).toEqual([
      'postgres://u:p%40@h1:1/db?sslmode=disable',
      'postgres://u:p%40@[::1]:2/db?sslmode=disable',
      'postgres://u:p%40@h3/db?sslmode=disable',
    ])
  })

  it.each([
    '',
    'S3cret',
    'mysql://u:S3cret@h/db',
    'postgres:/u:S3cret@h/db',
    'postgres://u:a/S3cret@h/db',
    'postgres://u:S3cret#1@h/db',
    'postgres://u:S3cret%zz@h/db',
    'postgres://u:S3cret@h:99999/db',
    'postgres://u:S3cret@h1,h2:x/db',
    'pglite:',
    5,
    null,
    undefined,
    {},
    [],
  ])('refuses %j without repeating it', (database) => {
    let thrown: unknown
    try {
      createDriver(database)
    } catch (error) {
      thrown = error
    }

    expect(thrown).toMatchObject({ code: 'INVALID_ARGUMENT', field: 'database' })
    expect(inspect(thrown)).not.toContain('S3cret')
  })
})
