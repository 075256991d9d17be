import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { App } from '../../../src/index.ts'

/** One of every call about sequences, with answers that no setting of a database may change. */
export async function sequencesRound({ sequences }: Pick<App, 'sequences'>): Promise<void> {
  const name = `ro"und 'é\\ ${randomUUID()}`
  const tenant = "t\\'€"
  const created = await sequences.create(name, { initial: -5n, increment: 3, max: 100, tenant })
  expect(Math.abs(created.createdAt.getTime() - Date.now())).toBeLessThan(600_000)
  expect(await sequences.next(name, { tenant })).toBe(-2n)
  const range = { first: 1n, last: 7n, increment: 3n, count: 3n }
  const key = `k\\ '${name}`
  for (const _ of [1, 2])
    expect(await sequences.reserve(name, 3, { tenant, idempotencyKey: key })).toEqual(range)
  await expect(sequences.reserve(name, 32, { tenant })).rejects.toMatchObject({ available: 31n })
  expect(await sequences.get(name, { tenant })).toMatchObject({ current: 7n, available: 31n, revision: 2n })
  expect((await sequences.list({ tenant, prefix: name })).sequences).toHaveLength(1)
  expect(await sequences.delete(name, { tenant })).toBe(true)
  await expect(sequences.next(name, { tenant })).rejects.toMatchObject({ code: 'SEQUENCE_NOT_FOUND' })
}
