import fs from 'node:fs'
import { deviations } from './script-deviations.ts'

type Text =
  | string
  | { readonly join: readonly (string | { readonly repeat: string; readonly times: number })[] }

export type SetupStep =
  | Text
  | { readonly script: Text; readonly params: Readonly<Record<string, string>> }
  | { readonly sleepMs: number }
  | { readonly captureNow: string }

export interface ExpectedValue {
  readonly key?: string
  readonly value?: string
  readonly revision?: number
}

export interface Expected {
  readonly result?: ExpectedValue & { readonly type: string; readonly values?: readonly ExpectedValue[] }
  readonly error?: {
    readonly kind: 'syntax' | 'runtime' | 'throw' | 'aborted' | 'invalid-input'
    readonly code?: string
    readonly line?: number
    readonly column?: number
    readonly message?: string
  }
  /** Live values by key; `e:` before an ephemeral one; null: absent. */
  readonly state?: Readonly<
    Record<string, string | null | { readonly repeat: string; readonly times: number }>
  >
  readonly revisions?: Readonly<Record<string, number>>
}

export interface ScriptVector {
  readonly id: string
  readonly area: string
  readonly why: string
  readonly setup: readonly SetupStep[]
  readonly script: Text
  readonly params: Readonly<Record<string, string>> | null
  readonly expect: Expected
}

interface RawVector extends ScriptVector {
  readonly recommended?: Expected
}

/** The vectors with what is right here: what is recommended where upstream has a defect, and what we decided otherwise. */
export function readVectors(): readonly ScriptVector[] {
  const file = new URL('./scripts.json', import.meta.url)
  const raw = JSON.parse(fs.readFileSync(file, 'utf8')) as readonly RawVector[]
  return raw.map(({ recommended, ...vector }) => {
    const deviation = deviations[vector.id]
    return {
      ...vector,
      ...(deviation?.script === undefined ? {} : { script: deviation.script }),
      expect: deviation?.expect ?? recommended ?? vector.expect,
    }
  })
}

export function textOf(text: Text): string {
  if (typeof text === 'string') return text
  return text.join.map((part) => (typeof part === 'string' ? part : part.repeat.repeat(part.times))).join('')
}
