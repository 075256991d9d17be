import { createPgDriver } from '../../src/adapters/pg.ts'
import { resolveEffect } from '../../src/admin/resolve-effect.ts'
import { HoldfastError } from '../../src/base/errors.ts'
import { idempotencyKeyOf } from '../../src/effects/idempotency-key.ts'
import { findReceipt } from './provider.ts'
import type { Stage } from './stage.ts'

interface Asked extends Record<string, unknown> {
  readonly tenant: string
  readonly name: string
  readonly key: string
  readonly call: string
}

/**
 * The person that `ask` asks: looks at the provider whether the call in doubt took place, decides so, and enqueues a
 * job with the same effect, which has to find the decision. The job that asked stays discarded: I5 is about ends.
 *
 * @returns How many doubts there were.
 */
export async function decideDoubts(stage: Stage): Promise<number> {
  const asked = await stage.inspector.query<Asked>(
    `select distinct e.tenant, e.name, e.key, e.call::text from holdfast.effect_question q
     join holdfast.effect e using (tenant, name, key) where e.state in ('intended', 'uncertain')`,
  )
  for (const effect of asked) {
    try {
      await decide(stage, effect)
    } catch (error) {
      // The database may go away at any moment; what was not decided is asked again.
      if (!(error instanceof HoldfastError)) throw error
    }
  }
  return asked.length
}

async function decide({ inspector, provider, server }: Stage, { call, ...effect }: Asked): Promise<void> {
  const { tenant, name, key } = effect
  const receipt = await findReceipt(provider.url, idempotencyKeyOf(tenant, name, key))
  const driver = createPgDriver({ url: server.url() })
  const services = { driver, database: { queryable: driver, schema: 'holdfast', prepare: false } }
  const common = { reason: 'the provider was asked', actor: 'chaos', retry: false }
  try {
    const { status } = await resolveEffect(
      services,
      effect,
      receipt === undefined
        ? { ...common, outcome: 'repeat' }
        : { ...common, outcome: 'happened', result: JSON.stringify(receipt) },
    )
    if (status !== 'resolved') return
  } finally {
    await driver.close()
  }
  const input = JSON.stringify({ key: `decided-${key}-${call}`, effect: key })
  await inspector.query('select holdfast.enqueue($1, $2)', ['asker', input])
}
