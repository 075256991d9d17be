import app from './app.ts'
import type { Message } from './record.ts'

export interface RunningWorker {
  /** Lets running handlers end, hands the rest back. */
  stop(): Promise<void>
}

/** Starts a worker for the shop's queue; each of its writes that is refused goes to `tell`. */
export async function runWorker(tell: (message: Message) => void): Promise<RunningWorker> {
  app.events.on('write.refused', (event) => {
    tell({ type: 'refused', jobId: String(event.jobId), fencingToken: String(event.fencingToken) })
  })

  const worker = app.worker({ queues: ['mail'] })
  await worker.start()
  return {
    stop: async () => await worker.stop(),
  }
}
