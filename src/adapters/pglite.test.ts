import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDriver } from './create-driver.ts'

let root: string

beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-pglite-'))
})

afterEach(() => {
  fs.rmSync(root, { recursive: true, force: true })
})

describe('a folder', () => {
  it('keeps its data, belongs to one driver at a time, and is free after close', async () => {
    const folder = path.join(root, 'db')
    const first = createDriver(`pglite:${folder}`)
    const second = createDriver(`pglite:${folder}`)
    await first.query('create table note as select $1::text as body', ['kept'])

    await expect(second.query('select 1', [])).rejects.toMatchObject({
      code: 'FOLDER_LOCKED',
      pid: process.pid,
    })
    await first.close()

    await expect(second.query('select body from note', [])).resolves.toEqual([{ body: 'kept' }])
    await second.close()
  }, 60_000)

  it('that is no database is refused, and left unlocked', async () => {
    fs.mkdirSync(path.join(root, 'db'))
    fs.writeFileSync(path.join(root, 'db', 'PG_VERSION'), '3\n')
    const driver = createDriver(`pglite:${path.join(root, 'db')}`)

    for (const attempt of [1, 2]) {
      await expect(driver.query(`select ${attempt}`, [])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    }
    await driver.close()
  }, 60_000)
})
