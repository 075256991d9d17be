/**
 * The text of a float as the language writes it: shortest digits that read back the same, an exponent from 1E+15 up and
 * below 1E-04.
 */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity'
  if (Object.is(value, -0)) return '-0'
  // In this range JavaScript writes no exponent either.
  const size = Math.abs(value)
  if (value === 0 || (size >= 1e-4 && size < 1e15)) return String(value)
  const [digits, exponent] = value.toExponential().split('e') as [string, string]
  return `${digits}E${exponent.slice(0, 1)}${exponent.slice(1).padStart(2, '0')}`
}
