import { hintChannelOf } from '../base/channel.ts'
import { Hints } from '../driver/hints.ts'
import { Reach } from '../driver/reach.ts'
import type { KeyEntry } from '../keys/key-entry.ts'
import { Keys } from '../keys/keys.ts'
import type { AdminServices } from './services.ts'

/** The keys of a database that was opened without its application. */
export interface OpenKeys extends AsyncDisposable {
  readonly keys: Keys
}

/** Keys for the command and the shell, which know a database and no application. Ends watches when disposed of. */
export function openKeys({ driver, database }: AdminServices): OpenKeys {
  const databaseOf = () => {
    throw new Error('holdfast: the command has no transactions; this is a fault of ours')
  }
  const reach = new Reach({ driver, database, databaseOf, requireOutside: () => {} })
  const hints = new Hints({ driver, channel: hintChannelOf(database.schema), listens: true })
  const keys = new Keys({ reach, hints })
  return {
    keys,
    async [Symbol.asyncDispose]() {
      keys.close()
      await hints.close()
    },
  }
}

/** An entry as JSON has it: bytes as base64, and as text where they are text. */
export function entryJson(entry: KeyEntry) {
  const { key, revision, expiresAt, modifiedAt } = entry
  const base64 = Buffer.from(entry.value).toString('base64')
  return { key, revision, text: textOf(entry) ?? null, base64, expiresAt, modifiedAt }
}

/** A value for people: its text, or else its bytes in hexadecimal. */
export function valueText(entry: KeyEntry): string {
  return textOf(entry) ?? `\\x${Buffer.from(entry.value).toString('hex')}`
}

function textOf(entry: KeyEntry): string | undefined {
  try {
    return entry.text()
  } catch {
    return undefined
  }
}
