import { expect, it } from 'vitest'
import { describeEachBackend } from '../../support/backends.ts'

describeEachBackend('key functions', ({ open }) => {
  it('smoke', async () => {
    await using backend = await open()
    for (const e of [false, true]) {
      const set = async (key: string, value: string, rest = 'null, null, null, null, null, null') =>
        (
          await backend.sql(`select * from holdfast.key_set('', ${e}, $1, convert_to($2, 'UTF8'), ${rest})`, [
            key,
            value,
          ])
        )[0]
      console.log(await set('a/b', 'one'))
      console.log(await set('a/b', 'two', '60000, null, null, null, null, null'))
      console.log(await set('a/b', 'two', 'null, true, null, null, null, null'))
      console.log(await set('a/b/c', 'x', "0, null, null, '', null, true"))
      const q = async (t: string) => console.log(t, await backend.sql(`select * from holdfast.${t}`))
      await q(`key_get('', ${e}, 'a/b')`)
      await q(`key_get_revision('', ${e}, 'a/b', 0)`)
      await q(`key_extend('', ${e}, 'a/b', null)`)
      await q(`key_get_as_of('', ${e}, 'a/b', (extract(epoch from clock_timestamp())*1000)::int8)`)
      await q(`key_bucket('', ${e}, 'a', null)`)
      await q(`key_prefix('', ${e}, 'a/', null)`)
      await q(`key_prefix('', ${e}, 'a/', (extract(epoch from clock_timestamp())*1000)::int8)`)
      await q(`key_delete('', ${e}, 'a/b', null, null)`)
      await q(`key_delete('', ${e}, 'a/b', null, null)`)
      await q(`key_lock('', ${e}, '{z,a,m}', '{t,f,f}')`)
      await q(`key_guard('', ${e}, 'a/')`)
      await q(`key_unlock_unwritten('', ${e}, '{z,a,m}')`)
      await q(`${e ? 'ephemeral_' : ''}key_value`)
      await q(`${e ? 'ephemeral_' : ''}key_change order by place`)
    }
    expect(1).toBe(1)
  })
})
