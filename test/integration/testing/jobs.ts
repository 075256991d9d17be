import { z } from 'zod'
import { type App, type AppOptions, defineApp, defineJob } from '../../../src/index.ts'

/** An application whose database cannot be reached: what a test does with it has to be in memory. */
export function appOf(jobs: AppOptions['jobs'], options: Partial<AppOptions> = {}): App {
  return defineApp({ name: 'shop', database: 'postgres://nobody@127.0.0.1:1/none', jobs, ...options })
}

export const orderInput = z.object({ orderId: z.string() })

/** Does nothing. */
export const noted = defineJob({
  name: 'noted',
  input: orderInput,
  idempotent: true,
  handler: () => {},
})
