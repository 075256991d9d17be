/** What a checker says of a history. */
export interface Verdict {
  readonly checker: string
  readonly promise: string
  /** `unknown`: no fault was found in too little work, or the checker could not come to an end. */
  readonly answer: 'valid' | 'invalid' | 'unknown'
  /** How many answers were checked that could have been wrong. */
  readonly work: number
  /** Below this the history proves nothing. */
  readonly least: number
  /** Why it is invalid, the smallest reason first; or why nothing is known. */
  readonly explanation: readonly string[]
}

export interface Findings {
  readonly violations: readonly string[]
  readonly work: number
  readonly least: number
  /** What the checker could not decide. */
  readonly undecided?: readonly string[]
}

export function verdictOf(
  about: Pick<Verdict, 'checker' | 'promise'>,
  { violations, work, least, undecided = [] }: Findings,
): Verdict {
  const facts = { ...about, work, least }
  if (violations.length > 0) return { ...facts, answer: 'invalid', explanation: violations }
  const tooLittle = work < least ? [`${work} answers are too few to prove anything: at least ${least}`] : []
  const explanation = [...tooLittle, ...undecided]
  return { ...facts, answer: explanation.length > 0 ? 'unknown' : 'valid', explanation }
}
