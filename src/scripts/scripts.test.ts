import { expect, it } from 'vitest'
import type { Driver, StatementOptions } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import { Reach } from '../driver/reach.ts'
import { Scripts } from './scripts.ts'

/** Keeps how each statement is to be sent, and sends none. */
function recording() {
  const sent: StatementOptions[] = []
  const database: Database = {
    schema: 'holdfast',
    prepare: true,
    queryable: {
      query: async (_text, _values, options = {}) => {
        sent.push(options)
        return [{ at: '1', answer: '0' }]
      },
    },
  }
  const reach = new Reach({
    driver: {} as Driver,
    database,
    databaseOf: () => database,
    requireOutside: () => {},
  })
  return { scripts: new Scripts(reach), sent }
}

it('a script that writes is not sent again when its answer is lost; one that only reads may be', async () => {
  const { scripts, sent } = recording()
  await scripts.run('set a 1')
  await scripts.run('get a')
  expect(sent.map(({ repeatable }) => repeatable)).toEqual([false, true])
})

it('waits for an answer as long as the script may run and wait for locks, and ten seconds more', async () => {
  const { scripts, sent } = recording()
  await scripts.run('get a', {}, { timeoutMs: 200_000, lockWaitMs: 3000 })
  await scripts.run('begin (timeout=1000) get a end', {}, { timeoutMs: 200_000, lockWaitMs: 3000 })
  expect(sent.map(({ deadlineMs }) => deadlineMs)).toEqual([213_000, 14_000])
})
