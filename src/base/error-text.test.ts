import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { errorToJson, type RecordedError } from './error-text.ts'
import { redactText } from './redact.ts'

function record(thrown: unknown, maxBytes?: number): RecordedError {
  return JSON.parse(errorToJson(thrown, maxBytes)) as RecordedError
}

describe('recording what was thrown', () => {
  it('keeps name, message, code, stack and causes', () => {
    const cause = Object.assign(new TypeError('inner'), { code: 'E1' })
    const recorded = record(Object.assign(new Error('outer', { cause }), { code: 7 }))

    expect(recorded).toMatchObject({ name: 'Error', message: 'outer', code: '7' })
    expect(recorded.stack).toContain('error-text.test')
    expect(recorded.causes).toEqual([{ name: 'TypeError', message: 'inner', code: 'E1' }])
  })

  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  it.each<[unknown, Partial<RecordedError>]>([
    ['boom', { name: 'string', message: 'boom' }],
    ['', { name: 'string', message: 'an empty text was thrown' }],
    [undefined, { name: 'undefined', message: 'undefined' }],
    [null, { name: 'null', message: 'null' }],
    [5n, { name: 'bigint', message: '5' }],
    [Symbol('s'), { name: 'symbol', message: 'a symbol was thrown' }],
    [() => 1, { name: 'function', message: 'a function was thrown' }],
    [{ code: 7 }, { name: 'Object', message: '{"code":7}', code: '7' }],
    [{}, { name: 'Object', message: 'Object' }],
    [cyclic, { name: 'Object', message: '{"self":"[circular]"}' }],
    [
      {
        get message() {
          throw new Error('no')
        },
      },
      { name: 'Object', message: '"[unreadable]"' },
    ],
    [new Error('a\u0000\ud83d'), { name: 'Error', message: 'a\ufffd\ufffd' }],
    [new Error(''), { name: 'Error', message: 'Error' }],
  ])('tells something of any value (%#)', (thrown, expected) => {
    expect(record(thrown)).toMatchObject(expected)
  })

  it('tells something of proxies that refuse everything', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error('no')
        },
        ownKeys: () => {
          throw new Error('no')
        },
      },
    )

    for (const thrown of [proxy, hostile]) {
      expect(record(thrown)).toEqual({ name: 'Object', message: '"[unreadable]"' })
    }
  })

  it('keeps to its limit in bytes', () => {
    const huge = new Error('\u0001é'.repeat(2_500_000))
    for (const maxBytes of [1024, 16 * 1024]) {
      const json = errorToJson(huge, maxBytes)
      expect(Buffer.byteLength(json)).toBeLessThanOrEqual(maxBytes)
      expect((JSON.parse(json) as RecordedError).message.length).toBeGreaterThan(50)
    }
  })

  it('ends with chains of 10,000 causes and with circles of them', () => {
    let chain: Error | undefined
    for (let index = 0; index < 10_000; index += 1) chain = new Error(`${index}`, { cause: chain })
    const circle = new Error('a')
    circle.cause = new Error('b', { cause: circle })

    expect(record(chain).causes).toHaveLength(5)
    expect(record(circle).causes).toEqual([{ name: 'Error', message: 'b' }])
  })

  it('is total', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), (thrown) => {
        expect(record(thrown, 1024).message).not.toBe('')
      }),
    )
  })

  it('masks secrets that would be cut in half', () => {
    const json = errorToJson(new Error(`${'x'.repeat(500)} postgres://u:${'S3cret'.repeat(20)}@h/db`), 1024)

    expect(json).not.toContain('S3cret')
  })
})

describe('masking', () => {
  it.each([
    'postgres://u:S3cret@h:5432/db',
    'POSTGRESQL://u:S3cret@h,h2:1/db?x=y',
    'postgres://u:S3%40c%2FS3cret@h/db',
    'postgres://u:a@S3cret@h/db',
    'postgres://u:a/S3cret@h/db',
    'postgres:u:S3cret@h',
    'https://S3cret@host/path',
    'postgres%3A%2F%2Fu%3AS3cret%40h%2Fdb',
    'connect to postgres://h/db?user=u&password=S3cret&sslmode=x',
    "host=h password='S3cret S3cret' dbname=d",
    'PGPASSWORD=S3cret psql',
    '{"password":"S3cret","a":1}',
    '{ password: "S3\\"cret S3cret" }',
    'Authorization: Bearer S3cret',
    'authorization=Basic S3cretS3cret==',
    '"authorization":"Bearer S3cret.abc"',
    'sent bearer S3cretS3cret',
    'DB_PASSWORD: S3cret',
    'api_key=S3cret',
    'GET /hook?token=S3cret&x=1',
  ])('hides the secret of %s', (text) => {
    const masked = redactText(`before ${text} after`)

    expect(masked).not.toMatch(/S3|cret/)
    expect(masked).toMatch(/^before .* after$/)
  })

  it.each([
    'Unexpected token : in JSON',
    'the password is wrong',
    'a@b.example',
    'https://host/path?a=1',
    'C:\\x',
  ])('leaves %j as it is', (text) => {
    expect(redactText(text)).toBe(text)
  })

  it.each(['postgres://', 'a.', 'a-', 'password="', 'bearer ', 'x:y@', ':'])(
    'takes linear time on many %j',
    (part) => {
      const started = performance.now()
      redactText(part.repeat(64 * 1024).slice(0, 64 * 1024))

      expect(performance.now() - started).toBeLessThan(1500)
    },
  )
})
