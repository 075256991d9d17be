import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NotStorableError, TooLargeError } from './errors.ts'
import { toRecordableJson, toStorableJson, truncateUtf8 } from './json.ts'

const options = { field: 'input', maxBytes: 1024 * 1024 }

function store(value: unknown): string {
  return toStorableJson(value, options)
}

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

function cyclic(): unknown {
  const value: Record<string, unknown> = { list: [] }
  ;(value['list'] as unknown[]).push(value)
  return value
}

describe('storing what a caller gives', () => {
  it.each([[], {}, '', 0, false, null, true, -0, 1e21, 'é"\\\n', [[]], [null], { a: {} }, { '': 0 }])(
    'gives back %j unchanged',
    (value) => {
      expect(JSON.parse(store(value))).toStrictEqual(value)
    },
  )

  it('writes what JSON.stringify writes, for all JSON values', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        fc.pre(!JSON.stringify(value).includes('\\u0000') && !/\\ud[89a-f]/i.test(JSON.stringify(value)))
        expect(JSON.parse(store(value))).toStrictEqual(value)
      }),
    )
  })

  it('changes by rule: dates, undefined, toJSON, classes', () => {
    class Money {
      readonly cents = 5
    }
    const date = new Date(0)

    expect(store(undefined)).toBe('null')
    expect(
      store({ a: undefined, b: date, c: new Money(), d: { toJSON: (key: string) => `at ${key}` } }),
    ).toBe('{"b":"1970-01-01T00:00:00.000Z","c":{"cents":5},"d":"at d"}')
    expect(store(new URL('http://h/'))).toBe('"http://h/"')
    expect(store(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}')
  })

  it('keeps a member named __proto__', () => {
    expect(store(JSON.parse('{"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1}}')
  })

  const sparse: unknown[] = []
  sparse[1] = 1
  it.each<[string, unknown, string]>([
    ['a BigInt', { a: [{ b: 1n }] }, 'input.a[0].b'],
    ['NaN', [Number.NaN], 'input[0]'],
    ['an infinity', -Infinity, 'input'],
    ['a function', { f: () => 1 }, 'input.f'],
    ['a symbol', Symbol('s'), 'input'],
    ['a Map', { m: new Map() }, 'input.m'],
    ['a Set', new Set(), 'input'],
    ['a typed array', new Float64Array(2), 'input'],
    ['an Error', { e: new Error('x') }, 'input.e'],
    ['a hole in an array', sparse, 'input[0]'],
    ['undefined in an array', [undefined], 'input[0]'],
    ['NUL in a value', { a: 'x\u0000' }, 'input.a'],
    ['NUL in a name', { deep: { 'x\u0000': 1 } }, 'input.deep["x\\u0000"]'],
    ['half a surrogate pair', ['\ud83d'], 'input[0]'],
    ['half a pair in a name', { '\udc00': 1 }, 'input["\\udc00"]'],
    ['an invalid Date', new Date(Number.NaN), 'input'],
    ['a cycle', cyclic(), 'input.list[0]'],
    [
      'a throwing getter',
      {
        get a() {
          throw new Error('mine')
        },
      },
      'input',
    ],
    [
      'a throwing toJSON',
      {
        toJSON() {
          throw undefined
        },
      },
      'input',
    ],
  ])('refuses %s and tells where', (_, value, path) => {
    const storing = () => store(value)

    expect(storing).toThrow(NotStorableError)
    expect(storing).toThrow(expect.objectContaining({ path, code: 'NOT_STORABLE', changed: 'nothing' }))
  })

  it('refuses 10,000 levels without exhausting the stack, and takes 500', () => {
    expect(() => store(nested(10_000))).toThrow(NotStorableError)
    expect(JSON.parse(store(nested(499)))).toEqual(nested(499))
  })

  it('counts bytes of UTF-8', () => {
    const limited = { field: 'input', maxBytes: 12 }

    expect(toStorableJson('ééééé', limited)).toBe('"ééééé"')
    expect(() => toStorableJson('éééééé', limited)).toThrow(TooLargeError)
    expect(() => toStorableJson('x'.repeat(11), limited)).toThrow(
      expect.objectContaining({ field: 'input', bytes: 13 }),
    )
  })

  it('stops early when shared parts multiply', () => {
    let value: unknown = 'x'
    for (let level = 0; level < 60; level += 1) value = [value, value]

    expect(() => store(value)).toThrow(TooLargeError)
  })

  it('takes the same object twice', () => {
    const part = { a: 1 }

    expect(store([part, part])).toBe('[{"a":1},{"a":1}]')
  })
})

describe('recording what a handler gives', () => {
  it('alters nothing that can be stored', () => {
    expect(toRecordableJson({ a: 1 }, { maxBytes: 100 })).toEqual({ json: '{"a":1}', altered: false })
  })

  it.each([
    [{ a: 10n }, '{"a":"10"}'],
    [[Number.NaN, Infinity], '["NaN","Infinity"]'],
    ['a\u0000\ud83d', '"a\ufffd\ufffd"'],
    [cyclic(), '{"list":["[circular]"]}'],
    [new Map([[1, 2]]), '"[Map]"'],
    [() => 1, 'null'],
  ])('stores the nearest text of %s', (value, json) => {
    const recorded = toRecordableJson(value, { maxBytes: 1000 })

    expect(recorded).toMatchObject({ json, altered: true, problem: expect.stringContaining('result') })
  })

  it('says that a revoked proxy cannot be read', () => {
    expect(toRecordableJson({ a: revoked() }, { maxBytes: 100 }).json).toBe('{"a":"[unreadable]"}')
    expect(() => store({ a: revoked() })).toThrow(expect.objectContaining({ path: 'input.a' }))
  })

  it('stores null for what is too large, and says so', () => {
    expect(toRecordableJson('x'.repeat(50), { maxBytes: 20 })).toMatchObject({
      json: 'null',
      altered: true,
      problem: expect.stringContaining('20'),
    })
  })

  it('answers for anything', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withMap: true, withSet: true, withSparseArray: true }),
        (value) => {
          const { json } = toRecordableJson(value, { maxBytes: 10_000 })
          expect(() => JSON.parse(json)).not.toThrow()
        },
      ),
    )
  })
})

describe('shortening', () => {
  it('keeps to the limit in bytes and ends with a whole character, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(40), (text, maxBytes) => {
        const cut = truncateUtf8(text, maxBytes)
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(maxBytes)
        expect(text.startsWith(cut)).toBe(true)
        expect(cut === text).toBe(Buffer.byteLength(text) <= maxBytes)
      }),
    )
  })

  it('makes well-formed text of any', () => {
    expect(truncateUtf8('a\ud83d', 10)).toBe('a\ufffd')
    expect(truncateUtf8('a🚚', 4)).toBe('a')
    expect(truncateUtf8('🚚🚚', 7)).toBe('🚚')
  })
})
