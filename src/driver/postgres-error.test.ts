import { describe, expect, it } from 'vitest'
import { ClosedError } from '../base/errors.ts'
import { isRetryable, mapError } from './postgres-error.ts'

const write = { operation: 'enqueue_jobs', sent: true, repeatable: false }
const read = { ...write, repeatable: true }

function pgError(code: string, message = 'words of the server', detail?: string): Error {
  return Object.assign(new Error(message), { code, detail })
}

describe('mapping what a driver throws', () => {
  it.each(['08006', '57P01', '57P02', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', undefined])(
    'calls the outcome of a write unknown after %s, and a read merely unavailable',
    (code) => {
      const error = Object.assign(new Error('Connection terminated unexpectedly'), { code })

      expect(mapError(error, write)).toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        changed: 'unknown',
        cause: error,
      })
      expect(mapError(error, read)).toMatchObject({ code: 'UNAVAILABLE', changed: 'nothing', cause: error })
      expect(mapError(error, { ...write, sent: false })).toMatchObject({ code: 'UNAVAILABLE' })
    },
  )

  it.each(['57P03', '53300', '25006', '08001'])('knows that nothing ran before %s', (code) => {
    expect(mapError(pgError(code), write)).toMatchObject({ code: 'UNAVAILABLE', changed: 'nothing' })
  })

  it.each(['42P01', '3F000', '42883', '42703'])('takes %s on our schema for a missing migration', (code) => {
    expect(mapError(pgError(code), { ...write, schema: 'jobs' })).toMatchObject({
      code: 'SCHEMA_VERSION',
      schema: 'jobs',
      found: undefined,
    })
    expect(mapError(pgError(code), write)).toMatchObject({ code: 'DATABASE', sqlState: code })
  })

  it.each<[string, (error: Error) => unknown]>([
    ['Drizzle, MikroORM', (cause) => new Error('Failed query', { cause })],
    ['TypeORM', (driverError) => Object.assign(new Error('QueryFailedError'), { driverError })],
    ['Sequelize', (original) => Object.assign(new Error('SequelizeDatabaseError'), { original })],
    [
      'Prisma',
      ({ message, ...said }) =>
        Object.assign(new Error('Raw query failed'), {
          code: 'P2010',
          meta: {
            driverAdapterError: {
              cause: {
                kind: 'postgres',
                ...said,
                originalCode: said['code' as never],
                originalMessage: message,
              },
            },
          },
        }),
    ],
  ])('finds what PostgreSQL said inside the error of %s', (_, wrap) => {
    const said = pgError('HF002', 'no application has registered it', 'mail.send')

    expect(mapError(wrap(said), write)).toMatchObject({ code: 'UNKNOWN_JOB', jobName: 'mail.send' })
    expect(mapError(wrap(pgError('25P02')), write)).toMatchObject({ code: 'TRANSACTION_ABORTED' })
    expect(isRetryable(wrap(pgError('40P01')))).toBe(true)
  })

  it('takes no code of an ORM, and none inside an error of ours, for one of PostgreSQL', () => {
    expect(mapError(Object.assign(new Error(), { code: 'P2028' }), write)).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    })
    expect(isRetryable(new ClosedError({ what: 'app' }, { cause: pgError('40P01') }))).toBe(false)
  })

  it('does not follow a cause that leads back', () => {
    const error = new Error('round')
    error.cause = error

    expect(mapError(error, read)).toMatchObject({ code: 'UNAVAILABLE' })
  })

  it('maps an aborted transaction', () => {
    expect(mapError(pgError('25P02'), write)).toMatchObject({ code: 'TRANSACTION_ABORTED' })
  })

  it('maps the errors that our SQL functions raise', () => {
    expect(mapError(pgError('HF001', 'priority: must be from 0 to 9'), write)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      field: 'priority',
      problem: 'must be from 0 to 9',
    })
    expect(mapError(pgError('HF002', 'no application has registered it', 'mail.send'), write)).toMatchObject({
      code: 'UNKNOWN_JOB',
      jobName: 'mail.send',
    })
  })

  it('keeps values and secrets out of its message', () => {
    const values = mapError(pgError('23505', 'Key (email)=(S3cret) exists'), write)
    const address = mapError(pgError('28P01', 'no entry for postgres://u:S3cret@h'), write)

    expect(values.message).not.toContain('S3cret')
    expect(address.message).not.toContain('S3cret')
    expect(address.message).toContain('no entry')
  })

  it('passes errors of ours through', () => {
    const error = new ClosedError({ what: 'driver' })

    expect(mapError(error, write)).toBe(error)
  })

  it.each([
    undefined,
    null,
    'boom',
    7,
    {
      get code() {
        throw new Error('no')
      },
    },
  ])('maps anything (%#)', (thrown) => {
    expect(mapError(thrown, write)).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })

  it('tells what may succeed when run again', () => {
    for (const code of ['40001', '40P01', '55P03']) {
      expect(isRetryable(pgError(code))).toBe(true)
      expect(isRetryable(mapError(pgError(code), write))).toBe(true)
    }
    for (const error of [pgError('23505'), mapError(pgError('57P01'), write), undefined]) {
      expect(isRetryable(error)).toBe(false)
    }
  })
})
