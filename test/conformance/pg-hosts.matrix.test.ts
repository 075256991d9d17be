import pg from 'pg'
import { describe, expect, inject, it } from 'vitest'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { createDatabase, withDatabase } from '../support/database.ts'
import { startProxy } from '../support/proxy.ts'

describe('several hosts', () => {
  it('passes over a host that is down and one that is read-only', async () => {
    const [first, second] = Object.values(inject('postgresUrls'))
    if (first === undefined || second === undefined) throw new Error('expected two servers in the matrix')
    await using readOnly = await createDatabase({ migrated: false, server: first })
    await readOnly.sql(`alter database ${readOnly.name} set default_transaction_read_only to on`)
    await asAdmin(second, `create database ${readOnly.name}`)
    await using down = await startProxy(first)
    await using one = await startProxy(first)
    await using two = await startProxy(second)
    down.refuse()
    const hosts = [down, one, two].map(({ port }) => `127.0.0.1:${port}`).join(',')

    const driver = createPgDriver({ url: `postgres://postgres@${hosts}/${readOnly.name}` })
    const asked = `select current_setting('server_version_num') as version, current_setting('default_transaction_read_only') as refused`
    const [row] = await driver.query(asked, [])
    const session = await driver.session()

    expect(row).toMatchObject({ refused: 'off' })
    await expect(session.query(asked, [])).resolves.toEqual([row])
    await session.release()
    await driver.close()
    await asAdmin(second, `drop database ${readOnly.name}`)
  })
})

async function asAdmin(server: string, text: string): Promise<void> {
  const admin = new pg.Client(withDatabase(server, 'postgres'))
  await admin.connect()
  await admin.query(text)
  await admin.end()
}
