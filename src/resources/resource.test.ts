import { describe, expect, it } from 'vitest'
import { checkUses, noUses, resource } from './resource.ts'

const mailer = resource({ name: 'mailer', provides: ['send:email'], create: () => ({ sent: 0 }) })

describe('a resource', () => {
  it('is frozen, and keeps the "this" of its options', () => {
    const options = { name: 'own', provides: ['call:erp'] as const, value: 7, create: () => options.value }
    const own = resource(options)
    expect(Object.isFrozen(own)).toBe(true)
    expect(own.create({ tenant: '', signal: new AbortController().signal })).toBe(7)
    expect(own.provides).toEqual(['call:erp'])
  })

  it.each([
    ['name', { name: '' }],
    ['provides', { provides: [] }],
    ['provides', { provides: undefined }],
    ['provides[0]', { provides: ['email'] }],
    ['provides', { provides: ['enqueue:job'] }],
    ['create', { create: undefined }],
    ['dispose', { dispose: 'close' }],
    ['notHappened', { notHappened: true }],
  ])('without a sound %s is refused by that name', (field, fault) => {
    const options = { name: 'mailer', provides: ['send:email'], create: () => 1, ...fault }
    expect(() => resource(options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', field }),
    )
  })

  it('says of errors whether the action did not happen, and says no unless told', () => {
    const sure = resource({
      name: 'erp',
      provides: ['call:erp'],
      create: () => 1,
      notHappened: (error) => error === 'refused',
    })
    expect([sure.notHappened?.('refused'), sure.notHappened?.('timeout')]).toEqual([true, false])
    expect(mailer).not.toHaveProperty('notHappened')
  })
})

describe('uses', () => {
  it('are a frozen copy, and one and the same when there are none', () => {
    const given = { mailer }
    const checked = checkUses(given)
    expect(checked).toEqual(given)
    expect(checked).not.toBe(given)
    expect(Object.isFrozen(checked)).toBe(true)
    expect(checkUses({})).toBe(noUses)
    expect(checkUses(undefined)).toBe(noUses)
  })

  it('hold only what resource() makes', () => {
    for (const [field, uses] of [
      ['uses', 'mailer'],
      ['uses', null],
      ['uses.mailer', { mailer: {} }],
      ['uses.mailer', { mailer: null }],
      ['uses.mailer', { mailer: { create: () => 1 } }],
    ] as const) {
      expect(() => checkUses(uses)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', field }))
    }
  })
})
