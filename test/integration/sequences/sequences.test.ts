import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  InvalidArgumentError,
  OutsideTransactionError,
  SequenceExhaustedError,
  SequenceExistsError,
  SequenceNotFoundError,
  type Sequences,
} from '../../../src/index.ts'
import { prune } from '../../../src/worker/maintenance/pruner.ts'
import { describeEachHome, type Home } from '../homes.ts'

const MAX = 2n ** 63n - 1n
const MIN = -(2n ** 63n)

describeEachHome('sequences', ({ open }) => {
  let home: Home
  let sequences: Sequences
  beforeAll(async () => {
    home = await open()
    sequences = home.app.sequences
  })
  afterAll(async () => await home[Symbol.asyncDispose]())

  it('begin after their initial value and rise by their increment', async () => {
    expect(await sequences.create('plain')).toMatchObject({
      name: 'plain',
      current: 0n,
      initial: 0n,
      increment: 1n,
      max: undefined,
      available: MAX,
      revision: 0n,
      createdAt: expect.any(Date),
    })
    expect([await sequences.next('plain'), await sequences.next('plain')]).toEqual([1n, 2n])
    await sequences.create('tens', { initial: 1000, increment: 10n, max: 1050 })
    expect(await sequences.next('tens')).toBe(1010n)
    expect(await sequences.reserve('tens', 3)).toEqual({
      first: 1020n,
      last: 1040n,
      increment: 10n,
      count: 3n,
    })
    expect(await sequences.get('tens')).toMatchObject({
      current: 1040n,
      initial: 1000n,
      increment: 10n,
      max: 1050n,
      available: 1n,
      revision: 2n,
    })
  })

  it('give exact values over the whole range of 64 bits', async () => {
    await sequences.create('low', { initial: MIN })
    expect(await sequences.next('low')).toBe(MIN + 1n)
    // The product of increment and count leaves 64 bits; the values do not.
    await sequences.create('wide', { initial: MIN, increment: 2n ** 62n })
    expect(await sequences.reserve('wide', 3)).toEqual({
      first: MIN + 2n ** 62n,
      last: 2n ** 62n,
      increment: 2n ** 62n,
      count: 3n,
    })
    await expect(sequences.next('wide')).rejects.toMatchObject({ available: 0n })
    await sequences.create('all', { initial: MIN })
    await expect(sequences.reserve('all', MAX)).resolves.toMatchObject({ first: MIN + 1n, last: -1n })
    await sequences.create('end', { initial: MAX - 2n })
    await expect(sequences.reserve('end', 3)).rejects.toBeInstanceOf(SequenceExhaustedError)
    expect(await sequences.reserve('end', 2)).toMatchObject({ first: MAX - 1n, last: MAX })
  })

  it('tell what is missing by a type of its own, and make nothing', async () => {
    const missing = sequences.next('missing', { tenant: 'acme' })
    await expect(missing).rejects.toBeInstanceOf(SequenceNotFoundError)
    await expect(missing).rejects.toMatchObject({
      code: 'SEQUENCE_NOT_FOUND',
      sequence: 'missing',
      tenant: 'acme',
      changed: 'nothing',
    })
    await expect(sequences.reserve('missing', 2, { idempotencyKey: 'k' })).rejects.toBeInstanceOf(
      SequenceNotFoundError,
    )
    expect(await sequences.get('missing')).toBeUndefined()
    expect(await sequences.delete('missing')).toBe(false)
  })

  it('may be created at every start', async () => {
    const settings = { initial: 5, increment: 2, max: 99 }
    await sequences.create('kept', { ...settings, ifExists: 'keep' })
    await sequences.next('kept')
    expect(await sequences.create('kept', { ...settings, ifExists: 'keep' })).toMatchObject({ current: 7n })
    for (const other of [{ initial: 4 }, { increment: 3 }, { max: 98 }, { max: undefined }])
      await expect(
        sequences.create('kept', { ...settings, ...other, ifExists: 'keep' }),
      ).rejects.toBeInstanceOf(SequenceExistsError)
    expect(await sequences.next('kept')).toBe(9n)
  })

  it('begin afresh when they are deleted and created again, whatever was remembered', async () => {
    await sequences.create('again')
    expect(await sequences.next('again', { idempotencyKey: 'k' })).toBe(1n)
    expect(await sequences.delete('again')).toBe(true)
    await expect(sequences.next('again', { idempotencyKey: 'k' })).rejects.toBeInstanceOf(
      SequenceNotFoundError,
    )
    await sequences.create('again', { initial: 50 })
    expect(await sequences.next('again', { idempotencyKey: 'k' })).toBe(51n)
  })

  it('give a repeated request the same values, and another count a refusal', async () => {
    await sequences.create('keyed')
    const first = await sequences.reserve('keyed', 5, { idempotencyKey: 'order 7' })
    await sequences.next('keyed')
    expect(await sequences.reserve('keyed', 5n, { idempotencyKey: ' order 7\n' })).toEqual(first)
    await expect(sequences.reserve('keyed', 4, { idempotencyKey: 'order 7' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      field: 'idempotencyKey',
    })
    await expect(sequences.next('keyed', { idempotencyKey: 'order 7' })).rejects.toBeInstanceOf(
      InvalidArgumentError,
    )
    expect(await sequences.next('keyed', { idempotencyKey: ' ' })).toBe(7n)
    expect(await sequences.next('keyed', { idempotencyKey: '' })).toBe(8n)
    expect(await sequences.get('keyed')).toMatchObject({ current: 8n, revision: 4n })
  })

  it('remember a request also when they have no more values', async () => {
    await sequences.create('short', { max: 3 })
    const range = await sequences.reserve('short', 3, { idempotencyKey: 'k' })
    await expect(sequences.next('short')).rejects.toBeInstanceOf(SequenceExhaustedError)
    await expect(sequences.next('short', { idempotencyKey: 'other' })).rejects.toBeInstanceOf(
      SequenceExhaustedError,
    )
    expect(await sequences.reserve('short', 3, { idempotencyKey: 'k' })).toEqual(range)
  })

  it('remember 256 requests and ten minutes, and no more', async () => {
    await sequences.create('bounded')
    const keys = Array.from({ length: 257 }, (_, n) => `k${n}`)
    for (const key of keys) await sequences.next('bounded', { idempotencyKey: key })
    expect(await sequences.next('bounded', { idempotencyKey: 'k1' })).toBe(2n)
    expect(await sequences.next('bounded', { idempotencyKey: 'k0' })).toBe(258n)
    const old = `update holdfast.sequence_request r set drawn_at = clock_timestamp() - interval '11 minutes'
      from holdfast.sequence s where s.id = r.sequence_id and s.name = 'bounded' returning r.key`
    expect(await home.sql(old)).toHaveLength(256)
    expect(await sequences.next('bounded', { idempotencyKey: 'k5' })).toBe(259n)
    expect(await sequences.next('bounded', { idempotencyKey: 'k5' })).toBe(259n)
    await prune(home.app.internals.database, home.app.composition.retention)
    expect(
      await home.sql(
        `select key from holdfast.sequence_request r join holdfast.sequence s on s.id = r.sequence_id where s.name = 'bounded'`,
      ),
    ).toEqual([{ key: 'k5' }])
  })

  it('belong to their tenant, as do the keys of requests', async () => {
    for (const tenant of [undefined, 'a', 'a:b']) await sequences.create('b:c', { tenant })
    await sequences.create('c', { tenant: 'a:b' })
    const draw = async (name: string, tenant: string | undefined) =>
      await sequences.next(name, { tenant, idempotencyKey: 'k' })
    await sequences.next('b:c', { tenant: 'a' })
    expect([await draw('b:c', undefined), await draw('b:c', 'a'), await draw('c', 'a:b')]).toEqual([
      1n,
      2n,
      1n,
    ])
    expect(await sequences.delete('b:c', { tenant: 'b' })).toBe(false)
    expect(await sequences.delete('b:c', { tenant: 'a' })).toBe(true)
    expect(await sequences.get('b:c')).toMatchObject({ current: 1n })
    expect((await sequences.list({ tenant: 'a:b' })).sequences.map(({ name }) => name)).toEqual(['b:c', 'c'])
  })

  it('are listed by pages, in the order of the bytes of their names, by what they begin with', async () => {
    const names = ['p', 'p%', 'pB', 'p_a', 'pa', 'pä', 'p🚚']
    for (const name of ['q', ...names, 'o'].reverse()) await sequences.create(name, { tenant: 'lists' })
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await sequences.list({ tenant: 'lists', prefix: 'p', limit: 3, after })
      seen.push(...page.sequences.map(({ name }) => name))
      after = page.next
    } while (after !== undefined)
    expect(seen).toEqual(names)
    expect((await sequences.list({ tenant: 'lists', prefix: 'p%' })).sequences).toHaveLength(1)
    expect((await sequences.list({ tenant: 'lists', limit: 9 })).next).toBeUndefined()
  })

  it('are part of a transaction: what is rolled back was neither created, drawn nor deleted', async () => {
    await sequences.create('mine')
    const seen: bigint[] = []
    const refused = home.transaction(async ({ tx, query }) => {
      seen.push(await sequences.next('mine', { tx }))
      await query('savepoint s')
      seen.push(await sequences.next('mine', { tx, idempotencyKey: 'k' }))
      await query('rollback to savepoint s')
      seen.push(await sequences.next('mine', { tx, idempotencyKey: 'k' }))
      await sequences.create('mine too', { tx })
      expect(await sequences.get('mine too', { tx })).toMatchObject({ name: 'mine too' })
      expect(await sequences.delete('mine', { tx })).toBe(true)
      throw new Error('no')
    })
    await expect(refused).rejects.toThrow('no')
    expect(seen).toEqual([1n, 2n, 2n])
    expect(await sequences.get('mine too')).toBeUndefined()
    const drawn = await home.app.transaction(async (tx) => await sequences.reserve('mine', 2, { tx }))
    expect(drawn).toMatchObject({ first: 1n, last: 2n })
  })

  it("leave a caller's transaction as it was when they refuse", async () => {
    await sequences.create('left', { max: 1 })
    await home.transaction(async ({ tx }) => {
      await expect(sequences.next('nowhere', { tx })).rejects.toBeInstanceOf(SequenceNotFoundError)
      await expect(sequences.create('left', { tx })).rejects.toBeInstanceOf(SequenceExistsError)
      await expect(sequences.reserve('left', 2, { tx })).rejects.toMatchObject({ available: 1n })
      expect(await sequences.next('left', { tx, idempotencyKey: 'k' })).toBe(1n)
      await expect(sequences.reserve('left', 2, { tx, idempotencyKey: 'k' })).rejects.toBeInstanceOf(
        InvalidArgumentError,
      )
    })
    expect(await sequences.get('left')).toMatchObject({ current: 1n })
  })

  it('are refused without tx inside a transaction of the application, the cached ones too', async () => {
    await sequences.create('inside')
    const cached = sequences.cached('inside')
    await home.app.transaction(async () => {
      await expect(sequences.next('inside')).rejects.toBeInstanceOf(OutsideTransactionError)
      await expect(cached.next()).rejects.toBeInstanceOf(OutsideTransactionError)
    })
    expect(await cached.next()).toBe(1n)
  })

  it('give values from memory, of a block each, none twice', async () => {
    await sequences.create('ids', { max: 25 })
    const [one, two] = [sequences.cached('ids', { block: 10 }), sequences.cached('ids', { block: 10 })]
    const drawn = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => await (n % 2 === 0 ? one : two).next()),
    )
    expect(new Set(drawn).size).toBe(20)
    expect([await one.next(), await one.next()]).toEqual([21n, 22n])
    await expect(two.next()).rejects.toMatchObject({ code: 'SEQUENCE_EXHAUSTED', available: 0n })
    expect(await sequences.get('ids')).toMatchObject({ current: 25n, revision: 3n })
    await expect(sequences.cached('nowhere').next()).rejects.toBeInstanceOf(SequenceNotFoundError)
  })

  it('refuse what is out of range before anything is sent', async () => {
    const create = async (options: object) => await sequences.create('refused', options)
    const cases: readonly [string, Promise<unknown>][] = [
      ['increment', create({ increment: 0 })],
      ['increment', create({ increment: -1 })],
      ['increment', create({ increment: 2 ** 53 })],
      ['initial', create({ initial: MAX + 1n })],
      ['initial', create({ initial: '5' })],
      ['max', create({ initial: 5, max: 4 })],
      ['max', create({ max: 1.5 })],
      ['tenant', create({ tenant: '' })],
      ['ifExists', create({ ifExists: 'reset' })],
      ['name', sequences.next(' ')],
      ['name', sequences.get(5 as never)],
      ['name', sequences.delete('x'.repeat(1025))],
      ['count', sequences.reserve('refused', 0)],
      ['count', sequences.reserve('refused', MAX + 1n)],
      ['idempotencyKey', sequences.next('refused', { idempotencyKey: 'x'.repeat(1025) })],
      ['limit', sequences.list({ limit: 0 })],
      ['after', sequences.list({ after: '!' })],
      ['prefix', sequences.list({ prefix: '\0' })],
    ]
    for (const [field, refused] of cases)
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', field })
    expect(() => sequences.cached('refused', { block: 0 })).toThrow(InvalidArgumentError)
    expect(await sequences.get('refused')).toBeUndefined()
  })

  it('can be drawn from by SQL, with the same rules', async () => {
    await sequences.create('by sql', { max: 2 })
    const next = async (args: string) =>
      (await home.sql(`select holdfast.next_value(${args})::text as value`))[0]?.['value']
    expect(await next(`'by sql', idempotency_key => 'k'`)).toBe('1')
    expect(await sequences.next('by sql', { idempotencyKey: 'k' })).toBe(1n)
    expect(await next(`' by sql '`)).toBe('2')
    await expect(next(`'by sql'`)).rejects.toMatchObject({ code: 'HF012' })
    await expect(next(`'by sql', tenant => 'a'`)).rejects.toMatchObject({ code: 'HF011' })
    await expect(next(`' '`)).rejects.toMatchObject({ code: 'HF001' })
    await expect(next(`'by sql', tenant => null`)).rejects.toMatchObject({ code: 'HF001' })
  })
})
