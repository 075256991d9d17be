import type { Coordination } from '../../app/coordination.ts'
import type { KeyEntry } from '../../keys/key-entry.ts'
import type { KeyChange } from '../../keys/key-watch.ts'
import type { Keys } from '../../keys/keys.ts'
import type { ShellChange, ShellEntry, ShellKeys, ShellServices } from './services.ts'
import { textOf } from './text-of.ts'

/** What the shell works through, over a database. */
export function servicesOf(coordination: Coordination): ShellServices {
  const { sequences, locks, keys } = coordination
  return {
    sequences,
    locks,
    keys: keysOf(keys),
    async script(text, params, { tenant, signal }) {
      const { type, revision, values } = await coordination.script(text, params, {
        ...(tenant === undefined ? {} : { tenant }),
        signal,
      })
      return {
        type,
        revision,
        values: values.map(({ key, value, revision: ofValue }) => ({
          key: key ?? undefined,
          value: textOf(value),
          revision: ofValue,
        })),
      }
    },
  }
}

function keysOf(keys: Keys): ShellKeys {
  return {
    async list(options) {
      const { entries, cursor } = await keys.list(options)
      return { entries: entries.map(entryOf), more: cursor !== null }
    },
    async revisions(key, options) {
      const found = await keys.revisions(key, options)
      return found.map(({ revision, modifiedAt, entry }) => ({
        key,
        revision,
        modifiedAt,
        value: entry && textOf(entry.value),
        expiresAt: undefined,
      }))
    },
    async watch(prefix, options) {
      const watching = keys.watch(prefix, options)
      await watching.started
      return changesOf(watching)
    },
  }
}

function entryOf({ key, revision, value, expiresAt, modifiedAt }: KeyEntry): ShellEntry {
  return { key, revision, value: textOf(value), expiresAt: expiresAt ?? undefined, modifiedAt }
}

async function* changesOf(watching: AsyncIterable<KeyChange>): AsyncGenerator<ShellChange> {
  for await (const change of watching) yield changeOf(change)
}

function changeOf(change: KeyChange): ShellChange {
  if (change.kind === 'resync') return { kind: 'missed some changes' }
  const { kind, key, revision } = change
  const value = change.kind === 'set' ? textOf(change.entry.value) : undefined
  return { kind, key, revision, value }
}
