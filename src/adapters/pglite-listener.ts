import { AsyncResource } from 'node:async_hooks'
import { sleep } from '../base/sleep.ts'
import type { Listener, ListenerEvents } from '../driver/driver.ts'

type Unsubscribe = () => Promise<void>

const RETRY_MS = 1000

/** Listens on the shared connection of PGlite. `subscribe` is tried again every second until it succeeds. */
export function startPgliteListener(
  subscribe: (onNotify: (payload: string) => void) => Promise<Unsubscribe>,
  events: ListenerEvents,
): Listener {
  const closing = new AbortController()
  const state: { unsubscribe?: Unsubscribe } = {}
  // PGlite calls back in the context of whoever notified, perhaps inside that one's transaction: ours is not.
  const onNotify = AsyncResource.bind((payload: string) => {
    if (!closing.signal.aborted) tell(() => events.onNotify(payload))
  })
  const started = start()

  async function start(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        state.unsubscribe = await subscribe(onNotify)
        tell(events.onUp)
        return
      } catch (error) {
        tell(() => events.onDown(error))
        await sleep(RETRY_MS, closing.signal)
      }
    }
  }

  return {
    get up() {
      return state.unsubscribe !== undefined && !closing.signal.aborted
    },
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      await started
      try {
        await state.unsubscribe?.()
      } catch {
        // The instance was closed before its listener, and took the subscription with it.
      }
    },
  }
}

/** What a listener's callback throws is not PGlite's fault. */
function tell(callback: () => void): void {
  try {
    callback()
  } catch {
    // The contract of ListenerEvents: callbacks report their own errors.
  }
}
