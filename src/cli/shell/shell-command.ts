import type { Paint } from './paint.ts'
import type { Session } from './session.ts'

/** Of what a command takes names, for completion. */
export type NameKind = 'keys' | 'ekeys' | 'locks' | 'elocks' | 'sequences' | 'files' | 'topics' | 'params'

/** One call of a command. */
export interface Call {
  /** The words after the command. */
  readonly args: readonly string[]
  /** What stands after the command, as it was typed. */
  readonly rest: string
  readonly session: Session
  readonly paint: Paint
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
  /** Prints a line at once, for what goes on. */
  readonly print: (line: string) => void
}

/** A command of the shell. */
export interface ShellCommand {
  readonly name: string
  /** Such as `lock RESOURCE [MS]`. */
  readonly usage: string
  /** One line. */
  readonly summary: string
  /** Words that come first among those after the command, such as `create`. */
  readonly verbs?: readonly string[]
  readonly names?: NameKind
  /** True if it asks the database: how long it took is shown. */
  readonly isTimed?: boolean
  /** The lines of its answer, safe for a terminal. */
  readonly run: (call: Call) => Promise<readonly string[]>
}
