import { expect, it } from 'vitest'
import { z } from 'zod'
import { defineProducer } from './define-producer.ts'

const sound = {
  name: 'sales.confirm',
  input: z.object({ orderId: z.string() }),
  effects: ['write:sales.order', 'enqueue:mail.send'] as const,
  run: () => 'done',
}

it('is frozen, with its effects', () => {
  const producer = defineProducer(sound)
  expect(producer).toMatchObject({ name: sound.name, effects: sound.effects })
  expect(Object.isFrozen(producer)).toBe(true)
  expect(Object.isFrozen(producer.effects)).toBe(true)
})

it.each([
  ['name', { name: ' ' }],
  ['input', { input: {} }],
  ['run', { run: undefined }],
  ['effects', { effects: undefined }],
  ['effects', { effects: 'write:x' }],
  ['effects[0]', { effects: ['order'] }],
])('is refused without a sound %s', (field, fault) => {
  expect(() => defineProducer({ ...sound, ...fault } as never)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT', field }),
  )
})

it.each(['send:email', 'call:erp', 'store:files'])('is refused with %s, which cannot roll back', (effect) => {
  expect(() => defineProducer({ ...sound, effects: [effect] } as never)).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      field: 'effects',
      message: expect.stringContaining(effect),
    }),
  )
})
