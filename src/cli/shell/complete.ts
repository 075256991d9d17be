import fs from 'node:fs/promises'
import path from 'node:path'
import { oneLine } from '../../base/one-line.ts'
import { functionNames } from '../../scripts/functions.ts'
import { keywordOf, keywords } from '../../scripts/keywords.ts'
import { tokenize } from '../../scripts/tokens.ts'
import { commandNamed, commands } from './commands.ts'
import { topics } from './help-topics.ts'
import type { Session } from './session.ts'
import type { NameKind } from './shell-command.ts'
import { statementWords } from './statement-words.ts'
import { firstWord } from './words.ts'

/** Names that one completion asks the database for, and how long it waits for them. */
const NAMES = 100
const PATIENCE_MS = 700

/** Words after which a script names a key, and which name space it is in. */
const KEY_AFTER: ReadonlyMap<string, NameKind> = new Map([
  ...['set', 'get', 'exists', 'delete', 'del', 'extend', 'bucket', 'prefix'].map(
    (word) => [word, 'keys'] as const,
  ),
  ...['eset', 'eget', 'eexists', 'edelete', 'edel', 'eextend'].map((word) => [word, 'ekeys'] as const),
])

/** What the text before the cursor can go on as, and the part of it that each of these replaces. */
export type Completion = readonly [readonly string[], string]

/**
 * Completes the text before the cursor: commands and words of the language, and names of keys, locks and sequences from the
 * database. Never throws, and never waits long: without an answer nothing is offered.
 *
 * @param pending Lines of the same script before this one.
 */
export async function complete(session: Session, line: string, pending: string): Promise<Completion> {
  if (pending === '' && /^\s*\S*$/.test(line)) {
    const word = line.trimStart()
    const words = [...commands.map(({ name }) => name), ...statementWords].sort()
    return [words.filter((each) => each.startsWith(word.toLowerCase())).map((each) => `${each} `), word]
  }
  const command = pending === '' ? commandNamed(firstWord(line) ?? '') : undefined
  if (command === undefined) return await completeScript(session, line)
  const part = /(?:"[^"]*|'[^']*|`[^`]*|[^\s"'`]*)$/.exec(line)?.[0] ?? ''
  const before =
    line
      .slice(0, line.length - part.length)
      .trim()
      .split(/\s+/).length - 1
  const { verbs = [], names } = command
  if (verbs.length > 0 && before === 0)
    return [verbs.filter((verb) => verb.startsWith(part)).map((verb) => `${verb} `), part]
  if (names === undefined || before > (verbs.length > 0 ? 1 : 0)) return [[], part]
  const found = await namesOf(session, names, part.replace(/^["'`]/, ''))
  return [found.map((name) => quotedForCommand(name, part, names)), part]
}

async function completeScript(session: Session, line: string): Promise<Completion> {
  const part = /(?:"[^"]*|'[^']*|`[^`]*|@?\w*)$/.exec(line)?.[0] ?? ''
  const last = tokenize(line.slice(0, line.length - part.length)).at(-1)
  const kind = last?.kind === 'keyword' ? KEY_AFTER.get(last.text) : undefined
  if (part.startsWith('@'))
    return [
      [...session.params.keys()].map((name) => `@${name}`).filter((name) => name.startsWith(part)),
      part,
    ]
  if (kind !== undefined) {
    const found = await namesOf(session, kind, part.replace(/^["'`]/, ''))
    return [found.flatMap((name) => quotedForScript(name, part)), part]
  }
  if (/^["'`]/.test(part) || part === '') return [[], part]
  const words = [...keywords, ...[...functionNames].map((name) => `${name}(`)].sort()
  return [words.filter((word) => word.startsWith(part)), part]
}

/** Names that begin with `prefix`; none with what a terminal would obey, and none if the database takes long. */
async function namesOf(session: Session, kind: NameKind, prefix: string): Promise<readonly string[]> {
  try {
    const names = await inTime(lookUp(session, kind, prefix))
    return [...new Set(names)].filter((name) => name.startsWith(prefix) && oneLine(name) === name)
  } catch {
    // Completion is a help; what is wrong is told when the input runs.
    return []
  }
}

async function lookUp(session: Session, kind: NameKind, prefix: string): Promise<readonly string[]> {
  const { services, tenant } = session
  switch (kind) {
    case 'keys':
    case 'ekeys': {
      const durability = kind === 'keys' ? 'persistent' : 'ephemeral'
      const { entries } = await services.keys.list({ prefix, durability, limit: NAMES, tenant })
      return entries.map(({ key }) => key)
    }
    case 'locks':
    case 'elocks': {
      const durability = kind === 'locks' ? 'persistent' : 'ephemeral'
      const { locks } = await services.locks.list({ durability, tenant, limit: NAMES })
      return locks.map(({ resource }) => resource)
    }
    case 'sequences':
      return (await services.sequences.list({ prefix, limit: NAMES, tenant })).sequences.map(
        ({ name }) => name,
      )
    case 'params':
      return [...session.params.keys()].map((name) => `@${name}`)
    case 'topics':
      return [...topics.keys(), ...commands.map(({ name }) => name)]
    case 'files':
      return await filesOf(prefix)
  }
}

async function filesOf(prefix: string): Promise<readonly string[]> {
  const folder = prefix.endsWith('/') ? prefix : path.dirname(prefix)
  const found = await fs.readdir(folder === '' ? '.' : folder, { withFileTypes: true })
  const before = prefix.slice(0, prefix.lastIndexOf('/') + 1)
  return found.map((entry) => `${before}${entry.name}${entry.isDirectory() ? '/' : ''}`)
}

/** A name as a command takes it. */
function quotedForCommand(name: string, part: string, kind: NameKind): string {
  const quote = /^["'`]/.exec(part)?.[0]
  // A folder goes on.
  const end = kind === 'files' && name.endsWith('/') ? '' : ' '
  if (quote === undefined && !/[\s"'`]/.test(name)) return `${name}${end}`
  return `${quote ?? '"'}${quote === '`' ? name : name.replace(/["'\\]/g, '\\$&')}${quote ?? '"'}${end}`
}

/** A key as a script takes it: plain if it may stand so, or in quotes. */
function quotedForScript(name: string, part: string): readonly string[] {
  const quote = /^["'`]/.exec(part)?.[0]
  if (quote === undefined && /^[A-Za-z_]\w*$/.test(name) && keywordOf(name) === undefined) return [`${name} `]
  if (quote === undefined || quote === '`') return name.includes('`') ? [] : [`\`${name}\` `]
  return [`${quote}${name.replace(/["'\\]/g, '\\$&')}${quote} `]
}

async function inTime<T>(looking: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('too slow')), PATIENCE_MS)
  })
  looking.catch(() => {})
  return await Promise.race([looking, late]).finally(() => clearTimeout(timer))
}
