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
 * job with the same effect, which has to find the decision. Returns how many doubts were left.
 */
export async function decideDoubts({ inspector, provider }: Stage): Promise<number> {
  const asked = await inspector.query<Asked>(
    `select tenant, name, key, call::text from holdfast.effect
     where asked_job_id is not null and state in ('intended', 'uncertain')`,
  )
  for (const { tenant, name, key, call } of asked) {
    const receipt = await findReceipt(provider.url, idempotencyKeyOf(tenant, name, key))
    await inspector.query(
      `update holdfast.effect set state = $5::text::holdfast.effect_state, result = $6::json, ended_at = now()
       where tenant = $1 and name = $2 and key = $3 and call = $4::uuid and state in ('intended', 'uncertain')`,
      [
        tenant,
        name,
        key,
        call,
        receipt === undefined ? 'open' : 'happened',
        receipt === undefined ? null : JSON.stringify(receipt),
      ],
    )
    const input = JSON.stringify({ key: `decided-${key}-${call}`, effect: key })
    await inspector.query('select holdfast.enqueue($1, $2)', ['asker', input])
  }
  return asked.length
}
