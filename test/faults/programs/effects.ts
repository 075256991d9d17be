import { defineApp, defineJob } from '../../../src/index.ts'
import { everything } from '../../support/everything.ts'
import { listenToTest, tell } from '../../support/program.ts'
import { anything } from '../handlers.ts'

/**
 * A worker whose one job acts on the outside; the outside is the test, which is told. Argument: `{ database, leaseMs,
 * act }`: what its first call does after it has taken effect.
 */
const { database, leaseMs, act } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly database: string
  readonly leaseMs: number
  readonly act: 'die' | 'wait' | 'return'
}
interface Input {
  readonly ifUncertain: 'ask' | 'repeat'
}

const mail = defineJob({
  name: 'mail',
  input: anything<Input>(),
  idempotent: true,
  ...everything,
  retry: { type: 'fixed', delayMs: 0 },
  async handler(ctx, { ifUncertain }) {
    const { attempt } = ctx.job
    try {
      const options = { key: `mail:${ctx.job.id}`, ifUncertain }
      const result = await ctx.effect('send:email', options, async ({ idempotencyKey }) => {
        tell('called', { attempt, idempotencyKey })
        if (act === 'die') process.kill(process.pid, 'SIGKILL')
        // In short steps, so that a process that was stopped meanwhile still has them before it.
        for (let left = act === 'wait' ? 1500 : 0; left > 0; left -= 50)
          await new Promise((resolve) => setTimeout(resolve, 50))
        return { attempt }
      })
      tell('recorded', { attempt })
      return result
    } catch (error) {
      tell('refused', { attempt, error: (error as Error).name })
      throw error
    }
  },
})
const app = defineApp({ name: 'effects', database, jobs: [mail], leaseMs })
listenToTest()
const worker = app.worker()
await worker.start()
tell('ready')
