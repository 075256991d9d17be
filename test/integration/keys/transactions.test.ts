import { afterAll, beforeAll, expect, it } from 'vitest'
import { OutsideTransactionError } from '../../../src/index.ts'
import { describeEachHome, type Home, runInHandler } from '../homes.ts'

describeEachHome('keys in a transaction', ({ kind, open }) => {
  let home: Home
  beforeAll(async () => {
    home = await open()
    await home.work()
  })
  afterAll(async () => await home[Symbol.asyncDispose]())
  const text = async (key: string) => (await home.app.keys.get(key))?.text()

  it("of the caller's commit and roll back with it, to a savepoint too, and see its own changes", async () => {
    const { keys } = home.app
    await keys.set('own/a', 'before')
    const seen = await home.transaction(async ({ tx, query }) => {
      await keys.set('own/a', '1', { tx })
      await query('savepoint one')
      await keys.set('own/a', '2', { tx })
      await keys.set('own/b', '2', { tx })
      await query('rollback to savepoint one')
      await keys.increment('own/n', 1n, { tx })
      await keys.deleteMany(['own/none'], { tx })
      const [a, b] = await keys.getMany(['own/a', 'own/b'], { tx })
      const { entries } = await keys.list({ prefix: 'own/', tx })
      return [a?.text(), b?.text(), entries.map(({ key }) => key)]
    })
    await home
      .transaction(async ({ tx }) => {
        await keys.set('own/a', 'undone', { tx })
        await keys.delete('own/n', { tx })
        throw new Error('undo')
      })
      .catch(() => {})

    expect(seen).toEqual(['1', undefined, ['own/a', 'own/n']])
    expect(await text('own/a')).toBe('1')
    expect(await text('own/b')).toBeUndefined()
    expect(await text('own/n')).toBe('1')
    expect((await keys.revisions('own/a')).map(({ revision }) => revision)).toEqual([1n, 0n])
  })

  it('go on after a refused condition and a value that is no number', async () => {
    const { keys } = home.app
    await keys.set('refused/a', 'text')
    await home.transaction(async ({ tx }) => {
      const answer = await keys.set('refused/a', 'x', { tx, ifAbsent: true })
      await expect(keys.increment('refused/a', 1n, { tx })).rejects.toMatchObject({ code: 'KEY_VALUE' })
      await keys.set('refused/b', String(answer.ok), { tx })
    })

    expect(await text('refused/a')).toBe('text')
    expect(await text('refused/b')).toBe('false')
  })

  it('keep only the last of several values in the history, also where a delete comes between', async () => {
    const { keys } = home.app
    await home.transaction(async ({ tx }) => {
      await keys.set('several/a', '1', { tx })
      await keys.delete('several/a', { tx })
      await keys.set('several/a', '2', { tx })
      await keys.set('several/a', '3', { tx })
      await keys.extend('several/a', 60_000, { tx })
    })

    expect(
      (await keys.revisions('several/a')).map(({ revision, entry }) => [revision, entry?.text()]),
    ).toEqual([[3n, '3']])
    expect(await keys.get('several/a', { atRevision: 0n })).toBeUndefined()
  })

  it('commit with the completion of a job, or not at all', async () => {
    const { keys } = home.app
    await runInHandler(home, async (ctx) => {
      await ctx.commit(async (tx) => {
        await keys.set('job/done', 'yes', { tx })
        await tx.query('select 1')
      })
    })
    const failed = runInHandler(home, async (ctx) => {
      await ctx.commit(async (tx) => {
        await keys.set('job/undone', 'yes', { tx })
        throw new Error('undo')
      })
    })

    await expect(failed).rejects.toThrow('undo')
    expect(await text('job/done')).toBe('yes')
    expect(await text('job/undone')).toBeUndefined()
  })

  it('are refused without it inside a transaction of ours, and nothing waits', async () => {
    const { keys } = home.app
    await expect(home.app.transaction(async () => await keys.set('inside', 'x'))).rejects.toBeInstanceOf(
      OutsideTransactionError,
    )
    await expect(
      home.app.transaction(async () => {
        keys.watch('inside')
      }),
    ).rejects.toBeInstanceOf(OutsideTransactionError)
    expect(await text('inside')).toBeUndefined()
  })

  it.skipIf(kind === 'pglite')(
    'read a moment of their own under repeatable read, and a key written since is a conflict',
    async () => {
      const { keys } = home.app
      await keys.set('rr/a', '1')
      const conflict = home.transaction(async ({ tx, query }) => {
        await query('set transaction isolation level repeatable read')
        const before = await keys.get('rr/a', { tx })
        await keys.set('rr/a', '2')
        const after = await keys.get('rr/a', { tx })
        expect([before?.text(), after?.text()]).toEqual(['1', '1'])
        await keys.set('rr/a', '3', { tx })
      })

      await expect(conflict).rejects.toMatchObject({ code: 'DATABASE', sqlState: '40001' })
      expect(await text('rr/a')).toBe('2')
    },
  )
})
