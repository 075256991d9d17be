type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

const MAX_TEXT = 160

/** What JSON makes of a value; integers beyond numbers become text. */
export function toComparable(value: unknown): Json {
  const text = JSON.stringify(value ?? null, (_, item: unknown) =>
    typeof item === 'bigint' ? String(item) : item,
  )
  return sortMembers(JSON.parse(text) as Json)
}

/** Members in the order of their names: two that are equal then have the same text. */
function sortMembers(value: Json): Json {
  if (isList(value)) return value.map(sortMembers)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, item]) => [name, sortMembers(item)]))
}

/** How `seen` differs from `expected`, in words, with the place of each difference; none if they are equal. */
export function differencesOf(expected: Json, seen: Json, place = ''): readonly string[] {
  if (isList(expected) && isList(seen)) return differencesOfLists(expected, seen, place)
  if (isObject(expected) && isObject(seen)) {
    const names = [...new Set([...Object.keys(expected), ...Object.keys(seen)])]
    return names.flatMap((name) =>
      differencesOf(expected[name] ?? null, seen[name] ?? null, place === '' ? name : `${place}.${name}`),
    )
  }
  return textOf(expected) === textOf(seen) ? [] : [`${at(place)}${short(expected)} became ${short(seen)}`]
}

function differencesOfLists(
  expected: readonly Json[],
  seen: readonly Json[],
  place: string,
): readonly string[] {
  const more = withoutThose(seen, expected)
  const missing = withoutThose(expected, seen)
  if (more.length + missing.length > 0) {
    return [
      ...more.map((item) => {
        const times = countOf(item, seen)
        return `${at(place)}${countOf(item, expected) > 0 ? `${times} times` : 'also'} ${short(item)}`
      }),
      ...missing.map((item) => `${at(place)}missing ${short(item)}`),
    ]
  }
  return textOf(expected) === textOf(seen) ? [] : [`${at(place)}in another order`]
}

/**
 * True if nothing in `seen` is more than in `expected`, though it may be less: no number is larger, no list longer, and nothing
 * is in a list more often than there, or more than once if it is not there. What a job that stopped half-way has left is like that.
 */
export function isWithin(expected: Json | undefined, seen: Json): boolean {
  if (isList(seen)) {
    const there = isList(expected) ? expected : []
    if (seen.length > there.length) return false
    return seen.every((item) => countOf(item, seen) <= Math.max(1, countOf(item, there)))
  }
  if (isObject(seen)) {
    const there = isObject(expected) ? expected : {}
    return Object.entries(seen).every(([name, item]) => isWithin(there[name], item))
  }
  if (typeof seen === 'number') return typeof expected !== 'number' || seen <= expected
  return true
}

/** The items of `list` that are left when those of `taken` are taken away, each as often as it is there. */
function withoutThose(list: readonly Json[], taken: readonly Json[]): readonly Json[] {
  const left = taken.map(textOf)
  return list.filter((item) => {
    const index = left.indexOf(textOf(item))
    if (index >= 0) left.splice(index, 1)
    return index < 0
  })
}

function countOf(item: Json, list: readonly Json[]): number {
  return list.filter((other) => textOf(other) === textOf(item)).length
}

function textOf(value: Json): string {
  return JSON.stringify(value)
}

function short(value: Json): string {
  const text = textOf(value)
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text
}

function at(place: string): string {
  return place === '' ? '' : `${place}: `
}

// `Array.isArray` alone does not tell a readonly array from an object.
function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

function isObject(value: Json | undefined): value is { readonly [name: string]: Json } {
  return typeof value === 'object' && value !== null && !isList(value)
}

export type { Json }
