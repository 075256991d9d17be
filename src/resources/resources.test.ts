import { describe, expect, it, vi } from 'vitest'
import { ResourceError } from '../base/errors.ts'
import { noUses, type Resource, resource } from './resource.ts'
import { noValues, Resources } from './resources.ts'

const { signal } = new AbortController()

function open(replacements: Readonly<Record<string, Resource>> = {}) {
  const errors: (readonly [string, unknown])[] = []
  const resources = new Resources({
    replacements: new Map(Object.entries(replacements)),
    onError: (during, error) => errors.push([during, error]),
  })
  return { resources, errors }
}

/** A resource whose values are counted, and which waits to be let go on. */
function counted(name = 'mailer') {
  const built: string[] = []
  const freed: unknown[] = []
  const definition = resource({
    name,
    provides: ['send:email'],
    create: async ({ tenant }) => {
      built.push(tenant)
      await new Promise((resolve) => setImmediate(resolve))
      return { tenant, number: built.length }
    },
    dispose: (value) => freed.push(value),
  })
  return { definition, built, freed }
}

describe('the resources of a worker', () => {
  it('are nothing, and at once, for a job without any', () => {
    expect(open().resources.of({ uses: noUses }, '', signal)).toBe(noValues)
  })

  it('are built once for each tenant, however many ask at the same time, and shared by jobs', async () => {
    const { definition, built } = counted()
    const { resources } = open()
    const [one, two] = [{ uses: { mailer: definition } }, { uses: { post: definition } }]

    const [first, second, third, other] = await Promise.all([
      resources.of(one, 'a', signal),
      resources.of(one, 'a', signal),
      resources.of(two, 'a', signal),
      resources.of(one, 'b', signal),
    ])

    expect(built).toEqual(['a', 'b'])
    expect(second).toEqual(first)
    expect(third?.['post']).toBe(first?.['mailer'])
    expect(other?.['mailer']).not.toBe(first?.['mailer'])
    expect(resources.of(one, 'a', signal)).not.toBeInstanceOf(Promise)
    expect(Object.isFrozen(first)).toBe(true)
  })

  it('tell a failed build to those who asked, and build again for the next', async () => {
    let tries = 0
    const cause = new Error('refused')
    const flaky = resource({
      name: 'flaky',
      provides: ['call:erp'],
      create: () => {
        tries += 1
        if (tries === 1) throw cause
        return tries
      },
    })
    const { resources } = open()
    const user = { uses: { flaky } }

    const failed = [resources.of(user, 't', signal), resources.of(user, 't', signal)]
    for (const each of failed) {
      await expect(each).rejects.toThrow(ResourceError)
      await expect(each).rejects.toMatchObject({ code: 'RESOURCE', resource: 'flaky', tenant: 't', cause })
    }
    expect(await resources.of(user, 't', signal)).toEqual({ flaky: 2 })
  })

  it('keep no attempt waiting whose signal aborts, and go on being built for others', async () => {
    let finish: (value: string) => void = () => {}
    const slow = resource({
      name: 'slow',
      provides: ['call:erp'],
      create: async () => await new Promise<string>((resolve) => (finish = resolve)),
    })
    const { resources } = open()
    const user = { uses: { slow } }
    const ending = new AbortController()
    const reason = new Error('timed out')

    const given = resources.of(user, '', ending.signal)
    const patient = resources.of(user, '', signal)
    ending.abort(reason)
    await expect(given).rejects.toBe(reason)
    await expect(resources.of(user, '', ending.signal)).rejects.toBe(reason)
    finish('done')

    expect(await patient).toEqual({ slow: 'done' })
  })

  it('are those that stand in for them', async () => {
    const { definition, built } = counted()
    const fake = resource({ name: 'fake', provides: ['send:email'], create: () => 'fake' })
    const { resources } = open({ mailer: fake })
    expect(await resources.of({ uses: { mailer: definition } }, '', signal)).toEqual({ mailer: 'fake' })
    expect(built).toEqual([])
  })
})

describe('closing the resources', () => {
  it('frees each value once: by its definition, or by its own means', async () => {
    const { definition, freed } = counted()
    const own: string[] = []
    const make = (name: string, value: unknown) =>
      resource({ name, provides: ['call:x'], create: () => value })
    const uses = {
      mailer: definition,
      sync: make('sync', { [Symbol.dispose]: () => own.push('sync') }),
      async: make('async', { [Symbol.asyncDispose]: async () => void own.push('async') }),
      plain: make('plain', { close: () => own.push('never') }),
      nothing: make('nothing', undefined),
    }
    const { resources, errors } = open()
    await resources.of({ uses }, '', signal)

    await Promise.all([resources.close(), resources.close()])

    expect(freed).toEqual([{ tenant: '', number: 1 }])
    expect(own.toSorted()).toEqual(['async', 'sync'])
    expect(errors).toEqual([])
  })

  it('collects what fails, and frees the others all the same', async () => {
    const { definition, freed } = counted()
    const fault = new Error('stuck')
    const bad = resource({
      name: 'bad',
      provides: ['call:x'],
      create: () => 1,
      dispose: () => {
        throw fault
      },
    })
    const { resources, errors } = open()
    await resources.of({ uses: { bad, definition } }, '', signal)

    await resources.close()

    expect(errors).toEqual([['freeing resource "bad"', fault]])
    expect(freed).toHaveLength(1)
  })

  it('aborts and frees what is still being built, and builds nothing more', async () => {
    const freed: unknown[] = []
    const slow = resource({
      name: 'slow',
      provides: ['call:x'],
      create: async ({ signal: closing }) =>
        await new Promise((resolve) => closing.addEventListener('abort', () => resolve('late'))),
      dispose: (value) => freed.push(value),
    })
    const { resources, errors } = open()
    const asked = resources.of({ uses: { slow } }, '', signal)

    await resources.close()

    expect(await asked).toEqual({ slow: 'late' })
    expect(freed).toEqual(['late'])
    expect(errors).toEqual([])
    await expect(resources.of({ uses: { slow } }, 'other', signal)).rejects.toThrow(ResourceError)
  })

  it('does not hang on a value that cannot be freed', async () => {
    vi.useFakeTimers()
    try {
      const stuck = resource({
        name: 'stuck',
        provides: ['call:x'],
        create: () => 1,
        dispose: async () => await new Promise(() => {}),
      })
      const { resources, errors } = open()
      await resources.of({ uses: { stuck } }, '', signal)
      const closed = resources.close()
      await vi.advanceTimersByTimeAsync(10_000)
      await closed
      expect(errors).toEqual([
        ['freeing resource "stuck"', expect.objectContaining({ message: 'not done after 10000 ms' })],
      ])
    } finally {
      vi.useRealTimers()
    }
  })
})
