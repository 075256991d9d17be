import type { Recorded } from '../recorded.ts'
import type { Model } from './linearizability.ts'

/** A call of one key. What a call was not told, such as the revision in a process that does not ask for it, is left out. */
export type KeyCall = Recorded & { readonly key: string } & (KeyRead | KeyWrite)

export interface KeyRead {
  readonly kind: 'read'
  /** `null`: there is none. */
  readonly answer?: { readonly value: string | null; readonly revision?: bigint } | undefined
}

export interface KeyWrite {
  readonly kind: 'write'
  /** `null`: a delete. */
  readonly value: string | null
  /** All have to hold. */
  readonly conditions?: {
    readonly absent?: true
    readonly value?: string
    /** -1: never written. */
    readonly revision?: bigint
  }
  /**
   * `applied` false: a condition did not hold, or there was nothing to delete. `revision` is that of the key afterwards,
   * `current` the value that was told with a refusal.
   */
  readonly answer?:
    | { readonly applied: boolean; readonly revision?: bigint; readonly current?: string | null }
    | undefined
}

export interface KeyState {
  readonly value: string | null
  readonly revision: bigint
}

/** What a key is to its readers and writers: each write that applies, a delete too, is a revision. */
export const keyModel: Model<KeyState, KeyCall> = {
  initial: { value: null, revision: -1n },
  step: (state, call) => (call.kind === 'read' ? afterRead(state, call) : afterWrite(state, call)),
  isTooLate: ({ revision }, { kind, answer }) => {
    if (answer?.revision === undefined) return false
    // Revisions only grow.
    const isNew = kind === 'write' && 'applied' in answer && answer.applied
    return isNew ? revision >= answer.revision : revision > answer.revision
  },
  textOf: ({ value, revision }) => `${revision} ${value ?? ''}`,
}

function afterRead(state: KeyState, { answer }: KeyRead): KeyState | undefined {
  if (answer === undefined) return undefined
  const fits = answer.value === state.value && isRevision(state, answer.revision)
  return fits ? state : undefined
}

function afterWrite(state: KeyState, { value, conditions, answer }: KeyWrite): KeyState | undefined {
  const applies = holds(state, conditions) && !(value === null && state.value === null)
  if (answer === undefined) return applies ? { value, revision: state.revision + 1n } : undefined
  if (answer.applied !== applies) return undefined
  if (answer.current !== undefined && answer.current !== state.value) return undefined
  const after = applies ? { value, revision: state.revision + 1n } : state
  return isRevision(after, answer.revision) ? after : undefined
}

function holds(state: KeyState, conditions: KeyWrite['conditions'] = {}): boolean {
  if (conditions.absent === true && state.value !== null) return false
  if (conditions.value !== undefined && state.value !== conditions.value) return false
  return isRevision(state, conditions.revision)
}

function isRevision(state: KeyState, revision: bigint | undefined): boolean {
  return revision === undefined || revision === state.revision
}

/** The call and its answer, for people. */
export function sayKeyCall(call: KeyCall): string {
  const at = (revision: bigint | undefined) => (revision === undefined ? '' : ` at revision ${revision}`)
  const said = (value: string | null) => (value === null ? 'nothing' : JSON.stringify(value))
  if (call.kind === 'read') {
    const { answer } = call
    return answer === undefined ? 'read' : `read ${said(answer.value)}${at(answer.revision)}`
  }
  const { value, conditions, answer } = call
  const what = value === null ? 'delete' : `set ${said(value)}`
  const given = Object.entries(conditions ?? {}).map(([name, wanted]) => `${name} ${String(wanted)}`)
  const condition = given.length === 0 ? '' : ` if ${given.join(' and ')}`
  if (answer === undefined) return `${what}${condition}: no answer`
  return `${what}${condition}: ${answer.applied ? 'done' : 'refused'}${at(answer.revision)}`
}
