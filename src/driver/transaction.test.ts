import { describe, expect, it } from 'vitest'
import { DatabaseError } from '../base/errors.ts'
import {
  isOpenTransaction,
  retryTransaction,
  runTransaction,
  type TransactionConnection,
} from './transaction.ts'

function connection(answers: Record<string, string | Error> = {}): TransactionConnection & { log: string[] } {
  const log: string[] = []
  return {
    log,
    async command(text) {
      log.push(text)
      const answer = answers[text] ?? text.toUpperCase()
      if (answer instanceof Error) throw answer
      return answer
    },
    async queryAsUser() {
      return { rows: [], rowCount: 0 }
    },
    async query(text, _, options) {
      log.push(`${text} ${JSON.stringify(options)}`)
      return []
    },
    destroy(error) {
      log.push(`destroy ${String(error)}`)
    },
  }
}

const deadlock = new DatabaseError({ sqlState: '40P01', operation: 'x' })

describe('running a transaction', () => {
  it('begins, runs, commits', async () => {
    const fake = connection()

    const open = await runTransaction(fake, async (tx) => {
      await tx.query('select 1', [], { name: 'n' })
      return isOpenTransaction(tx)
    })

    expect(open).toBe(true)
    expect(fake.log).toEqual([
      'begin isolation level read committed',
      'select 1 {"name":"n","repeatable":true}',
      'commit',
    ])
  })

  it('prepares nothing behind a pooler', async () => {
    const fake = connection()

    await runTransaction(fake, async (tx) => await tx.query('select 1', [], { name: 'n' }), { unnamed: true })

    expect(fake.log[1]).toBe('select 1 {"repeatable":true}')
  })

  it('reports a commit that was answered with a rollback', async () => {
    const fake = connection({ commit: 'ROLLBACK' })

    await expect(runTransaction(fake, async () => 1)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
  })

  it('destroys a connection that cannot roll back, and throws what the callback threw', async () => {
    const fake = connection({ rollback: new Error('gone') })
    const thrown = new Error('mine')

    const running = runTransaction(fake, async () => {
      throw thrown
    })

    await expect(running).rejects.toBe(thrown)
    expect(fake.log.at(-1)).toContain('destroy')
  })
})

describe('retrying a transaction', () => {
  it('runs it again after a deadlock', async () => {
    let runs = 0
    const result = await retryTransaction(async () => {
      runs += 1
      if (runs < 3) throw deadlock
      return 'done'
    })

    expect([result, runs]).toEqual(['done', 3])
  })

  it('gives up after six runs', async () => {
    let runs = 0
    const running = retryTransaction(async () => {
      runs += 1
      throw deadlock
    })

    await expect(running).rejects.toBe(deadlock)
    expect(runs).toBe(6)
  })

  it('never repeats another error, nor after its signal', async () => {
    let runs = 0
    const fail = async (error: Error): Promise<never> => {
      runs += 1
      throw error
    }

    await expect(retryTransaction(async () => await fail(new Error('mine')))).rejects.toThrow('mine')
    await expect(retryTransaction(async () => await fail(deadlock), AbortSignal.abort())).rejects.toBe(
      deadlock,
    )
    expect(runs).toBe(2)
  })
})
