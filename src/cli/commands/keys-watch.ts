import { entryJson, openKeys, valueText } from '../../admin/keys.ts'
import { at } from '../../admin/time-text.ts'
import { oneLine } from '../../base/one-line.ts'
import type { KeyChange } from '../../keys/key-watch.ts'
import { command } from '../command.ts'
import { bigintOption, keyArgs, spaceOf } from '../key-options.ts'
import { openDatabase } from '../open-database.ts'
import { toJson } from '../output.ts'
import { listenToSignals } from '../signals.ts'

/** Prints each change of keys as it is committed, until SIGINT or SIGTERM. */
export const keysWatch = command({
  name: 'keys watch',
  description: 'Print changes of keys as they are committed, until SIGINT; with --json a document a line',
  args: {
    prefix: { type: 'positional', required: false, description: 'What keys start with. Default: all' },
    from: {
      type: 'string',
      valueHint: 'place',
      description: 'Go on behind this place. Default: from now on',
    },
    ...keyArgs,
  },
  async run({ args }) {
    const from = bigintOption('--from', args.from)
    await using opened = await openDatabase(args)
    await using open = openKeys(opened)
    const controller = new AbortController()
    const stop = () => controller.abort()
    const unlisten = listenToSignals({ onStop: stop, onAbort: stop, onEnd: () => process.exit(1) })
    try {
      const { signal } = controller
      for await (const change of open.keys.watch(args.prefix ?? '', { ...spaceOf(args), from, signal })) {
        process.stdout.write(`${args.json === true ? jsonLine(change) : line(change)}\n`)
      }
    } finally {
      unlisten()
    }
  },
})

function jsonLine(change: KeyChange): string {
  const { kind, place } = change
  const facts = 'entry' in change ? { ...entryJson(change.entry), kind, place } : change
  return toJson(facts).replaceAll(/\n\s*/g, ' ')
}

function line(change: KeyChange): string {
  if (change.kind === 'resync') return 'changes were missed: read afresh'
  const value = 'entry' in change ? `  ${valueText(change.entry)}` : ''
  return oneLine(`${at(change.changedAt)}  ${change.kind}  ${change.key}  r${change.revision}${value}`)
}
