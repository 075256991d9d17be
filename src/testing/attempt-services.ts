import type { ContextServices } from '../worker/handler-context.ts'
import type { Scope } from './scope.ts'
import { watchedCoordination } from './watched-coordination.ts'

/**
 * What a handler works through, so that the kit sees each step of it and can let it die there. After the death nothing is
 * sent, and whatever is awaited never comes, as in a process that is gone.
 */
export function attemptServices(base: ContextServices, { life, reached }: Scope): ContextServices {
  return {
    ...base,
    reached: (step) => reached(step),
    database: {
      ...base.database,
      queryable: {
        query: async (...given) => await life.live(async () => await base.database.queryable.query(...given)),
      },
    },
    enqueue: async (job, input, options) => {
      await reached(`enqueue ${job?.name}, before it`)
      const answer = await life.live(async () => await base.enqueue(job, input, options))
      await reached(`enqueue ${job?.name} committed`)
      return answer
    },
    coordination: watchedCoordination(base.coordination, { life, reached }),
    transact: async (fn, options) => await life.live(async () => await base.transact(fn, options)),
  }
}
