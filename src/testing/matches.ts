/** What asks a value itself: the matchers of Vitest, Jest and others, such as `expect.any(Number)`. */
interface AsymmetricMatcher {
  asymmetricMatch(value: unknown): boolean
}

/**
 * True if `value` has all that `expected` has: objects may have more members, arrays are compared place by place, and
 * matchers of a test framework are asked.
 */
export function matches(value: unknown, expected: unknown): boolean {
  if (isMatcher(expected)) return expected.asymmetricMatch(value)
  if (typeof expected !== 'object' || expected === null) return Object.is(value, expected)
  if (expected instanceof Date) return value === expected.toJSON()
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(expected)) {
    if (!Array.isArray(value) || value.length !== expected.length) return false
    return expected.every((item, index) => matches(value[index], item))
  }
  const members = value as Readonly<Record<string, unknown>>
  return Object.entries(expected).every(([name, item]) =>
    item === undefined ? members[name] === undefined : matches(members[name], item),
  )
}

function isMatcher(value: unknown): value is AsymmetricMatcher {
  return typeof (value as Partial<AsymmetricMatcher> | null)?.asymmetricMatch === 'function'
}
