import { checkName } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import type { EffectId } from '../effects/effect-store.ts'

/** As people give it: `key` may be one that a job's unique key stands for, with the job's name before it. */
const MAX_KEY_BYTES = 2048

/**
 * Checks what names an effect as people type it.
 *
 * @throws {InvalidArgumentError} It cannot be the name of one. Nothing was sent.
 */
export function checkEffectId(given: {
  readonly tenant?: string | undefined
  readonly name: string
  readonly key: string
}): EffectId {
  const { tenant = '', name, key } = given
  if (key === '' || Buffer.byteLength(key) > MAX_KEY_BYTES || /[\0\p{Cs}]/u.test(key)) {
    const problem = 'must be the key of an effect, such as confirmation:42'
    throw new InvalidArgumentError({ field: 'key', problem })
  }
  return { tenant: tenant === '' ? '' : checkName('tenant', tenant), name: checkName('name', name), key }
}

/** What the audit calls an effect. */
export function subjectOf({ tenant, name, key }: EffectId): string {
  return `effect ${JSON.stringify([tenant, name, key])}`
}
