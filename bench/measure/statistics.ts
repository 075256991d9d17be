export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

/** Nearest rank; NaN of nothing. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b)
  if (percent === 50 && sorted.length % 2 === 0 && sorted.length > 0) {
    const middle = sorted.length / 2
    return ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
  }
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}
