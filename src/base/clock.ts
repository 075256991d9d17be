/**
 * Milliseconds that only grow, from an arbitrary start: for durations within this process, whatever happens to
 * its wall clock. What is due, and whose lease it is, is told by PostgreSQL's clock.
 */
export function monotonicMs(): number {
  return performance.now()
}
