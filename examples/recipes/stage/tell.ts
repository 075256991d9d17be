import type { Told } from './actor.ts'

/** Tells whoever started this process; does nothing if nobody did. */
export function tell(kind: string, facts: Readonly<Record<string, unknown>> = {}): void {
  const told: Told = { kind, ...facts }
  // The callback takes the error of a listener that is gone: `disconnect` says so already.
  process.send?.(told, undefined, undefined, () => undefined)
}

// Nothing is to be left of a run that was killed.
process.once('disconnect', () => process.exit(0))
