/**
 * Milliseconds of CLOCK_MONOTONIC, which all processes of a machine share; `performance.now` reads the same clock, but
 * counts from each process's start. A process may be put aside between the two readings, so the closest pair counts.
 */
const offsetMs = Math.max(
  ...Array.from({ length: 200 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()),
)

export function sharedNow(): number {
  return performance.now() + offsetMs
}
