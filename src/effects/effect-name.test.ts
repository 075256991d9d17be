import { describe, expect, it } from 'vitest'
import { UndeclaredEffectError } from '../base/errors.ts'
import { requireDeclared } from './declared.ts'
import { checkEffects, enqueuedName, isOutside, noEffects } from './effect-name.ts'

describe('effects', () => {
  it('are six kinds with an object, kept in their order and frozen', () => {
    const given = [
      'read:a',
      'write:sales.order',
      'enqueue:mail.send',
      'send:email',
      'call:erp',
      'store:files',
    ]
    const checked = checkEffects('effects', given)
    expect(checked).toEqual(given)
    expect(Object.isFrozen(checked)).toBe(true)
    expect(checked.filter(isOutside)).toEqual(['send:email', 'call:erp', 'store:files'])
    expect(checked.map(enqueuedName).filter((name) => name !== undefined)).toEqual(['mail.send'])
  })

  it('are none when left out or empty', () => {
    expect(checkEffects('effects', undefined)).toBe(noEffects)
    expect(checkEffects('effects', [])).toBe(noEffects)
  })

  it.each([
    ['no text', 5],
    ['no kind', 'email'],
    ['an unknown kind', 'delete:order'],
    ['a kind that every object has', 'constructor:x'],
    ['a kind in capitals', 'Send:email'],
    ['a blank before the kind', ' send:email'],
    ['no object', 'send:'],
    ['a blank object', 'send: '],
    ['a blank in the object', 'send:my mail'],
    ['a line break', 'send:a\nb'],
    ['256 bytes of object', `send:${'é'.repeat(128)}`],
    ['half a surrogate pair', 'send:\ud800'],
  ])('are refused with %s, by the place of the item', (_, item) => {
    expect(() => checkEffects('effects', ['read:a', item])).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', field: 'effects[1]' }),
    )
  })

  it.each(['send:email', {}, null])('are an array, not %j', (value) => {
    expect(() => checkEffects('effects', value)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', field: 'effects' }),
    )
  })

  it('come once, have up to 255 bytes of object, and name jobs as they are called', () => {
    expect(() => checkEffects('effects', ['send:a', 'send:a'])).toThrow('"send:a" twice')
    expect(checkEffects('effects', [`send:${'x'.repeat(255)}`])).toHaveLength(1)
    expect(checkEffects('effects', ['enqueue:a job: with blanks']).map(enqueuedName)).toEqual([
      'a job: with blanks',
    ])
  })
})

describe('an undeclared effect', () => {
  it('is refused by an error that says who, what, what is declared and where to declare it', () => {
    const refuse = () =>
      requireDeclared({ kind: 'producer', name: 'sales.confirm' }, ['write:order'], 'enqueue:mail.send')
    expect(refuse).toThrow(UndeclaredEffectError)
    expect(refuse).toThrow(
      expect.objectContaining({
        code: 'UNDECLARED_EFFECT',
        changed: 'nothing',
        owner: { kind: 'producer', name: 'sales.confirm' },
        effect: 'enqueue:mail.send',
        declared: ['write:order'],
      }),
    )
    for (const part of ['producer "sales.confirm"', '"enqueue:mail.send"', 'write:order', 'defineProducer'])
      expect(refuse).toThrow(part)
    expect(() => requireDeclared({ kind: 'job', name: 'a' }, [], 'send:x')).toThrow(
      /declares nothing.*defineJob/,
    )
  })

  it('is only one that is not declared to the letter', () => {
    const owner = { kind: 'job', name: 'a' } as const
    expect(() => requireDeclared(owner, ['enqueue:b'], 'enqueue:b')).not.toThrow()
    expect(() => requireDeclared(owner, ['enqueue:b'], 'enqueue:B')).toThrow(UndeclaredEffectError)
  })
})
