/** The reserved words, in any letter case. As a key or variable each needs back-quotes. */
export const keywords = [
  'as',
  'at',
  'begin',
  'bucket',
  'by',
  'cmp',
  'cmprev',
  'commit',
  'del',
  'delete',
  'do',
  'edel',
  'edelete',
  'eexists',
  'eextend',
  'eget',
  'else',
  'end',
  'escan',
  'eset',
  'ex',
  'exists',
  'extend',
  'false',
  'for',
  'found',
  'get',
  'if',
  'in',
  'let',
  'norev',
  'not',
  'null',
  'nx',
  'of',
  'prefix',
  'return',
  'rollback',
  'scan',
  'set',
  'sleep',
  'then',
  'throw',
  'true',
  'xx',
] as const

export type Keyword = (typeof keywords)[number]

const words: ReadonlySet<string> = new Set(keywords)

/** The keyword that `word` is, in lower case; `undefined` if it is a name. */
export function keywordOf(word: string): Keyword | undefined {
  if (word.length > 8) return undefined
  const lower = word.toLowerCase()
  return words.has(lower) ? (lower as Keyword) : undefined
}
