import { expect, it } from 'vitest'
import { createLogger } from './logger.ts'

function written(
  options: Parameters<typeof createLogger>[0],
  write: (logger: ReturnType<typeof createLogger>) => void,
) {
  const lines: string[] = []
  write(createLogger({ ...options, stream: { write: (text) => lines.push(text) } }))
  return lines.join('')
}

it('writes one JSON object a line, from its level on, with fields that cannot pass for its own', () => {
  const text = written({ level: 'info' }, (logger) => {
    logger.debug('unseen')
    logger.info('one', { level: 'error', n: 10n, when: new Date(0), gone: undefined })
    logger.warn('two\nlines', { error: new TypeError('boom') })
  })
  const [one, two, ...rest] = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(rest).toEqual([])
  expect(one).toMatchObject({ level: 'info', message: 'one', n: '10', when: '1970-01-01T00:00:00.000Z' })
  expect(two).toMatchObject({
    level: 'warn',
    message: 'two\nlines',
    error: { name: 'TypeError', message: 'boom' },
  })
})

it('keeps a pretty line one line, with nothing that a terminal would obey', () => {
  const text = written({ format: 'pretty' }, (logger) =>
    logger.info('a\u001b[2Jb\nc', { 'na\nme': 'x\u0007y z' }),
  )
  expect(text.match(/\n/g)).toHaveLength(1)
  expect(text.replace(/\n$/, '')).not.toMatch(/\p{Cc}/u)
  expect(text).toContain('info')
})

it('masks secrets in messages, fields and errors', () => {
  for (const format of ['pretty', 'json'] as const) {
    const text = written({ format }, (logger) =>
      logger.error('at postgres://u:S3cret@h/db', {
        url: 'postgres://u:S3cret@h',
        error: new Error('password=S3cret'),
      }),
    )
    expect(text).not.toContain('S3cret')
  }
})

it('never throws, whatever it is given and wherever it writes', () => {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  const nasty = {
    get x(): string {
      throw new Error('no')
    },
  }
  const broken = createLogger({
    stream: {
      write: () => {
        throw new Error('closed')
      },
    },
  })
  broken.error('x')
  const text = written({}, (logger) => {
    logger.info('cycle', { cycle, f: () => {}, s: Symbol('s') })
    logger.info('getter', nasty as never)
    logger.info('huge', { text: 'x'.repeat(5_000_000) })
    logger.info(undefined as never, null as never)
  })
  expect(text).toContain('[circular]')
  for (const message of ['getter', 'huge', 'undefined']) expect(text).toContain(message)
  expect(text.length).toBeLessThan(200_000)
})

it('is silent at level silent, and refuses a level, format or stream that is none', () => {
  expect(written({ level: 'silent' }, (logger) => logger.error('x'))).toBe('')
  for (const options of [{ level: 'loud' }, { format: 'xml' }, { stream: {} }])
    expect(() => createLogger(options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
    )
})
