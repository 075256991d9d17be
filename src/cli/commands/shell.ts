import { readDatabase } from '../../adapters/database-url.ts'
import { checkName } from '../../base/check.ts'
import { migrate } from '../../migrations/migrate.ts'
import { usageError } from '../cli-error.ts'
import { command } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { openDatabase } from '../open-database.ts'
import { createMask } from '../secrets.ts'
import { complete } from '../shell/complete.ts'
import { CancelledError, faultLines } from '../shell/fault-lines.ts'
import { History, historyFile } from '../shell/history.ts'
import { runInteractive } from '../shell/interactive.ts'
import { Paint } from '../shell/paint.ts'
import { runPiped } from '../shell/piped.ts'
import { servicesOf } from '../shell/services-of.ts'
import { Session } from '../shell/session.ts'
import { listenToSignals } from '../signals.ts'

function isMemory(address: string): boolean {
  const source = readDatabase(address)
  return 'folder' in source && source.folder === undefined
}

/** A prompt for scripts, locks, keys and sequences; or, with its input piped, what runs them line by line. */
export const shell = command({
  name: 'shell',
  description: 'A prompt for scripts, locks, keys and sequences; piped input runs line by line',
  args: {
    tenant: { type: 'string', description: "Whose keys, locks and sequences. Default: nobody's" },
    continue: { type: 'boolean', description: 'With piped input: go on after an error' },
    timings: { type: 'boolean', description: 'Show how long answers took. Default: at a terminal' },
  },
  async run({ args, output: { color } }) {
    if (args.json === true) throw usageError('the shell prints text for people, and has no --json')
    const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
    const tenant = args.tenant === undefined ? undefined : checkName('tenant', args.tenant)
    const isInMemory = args.database !== undefined && isMemory(args.database)
    await using opened = await openDatabase(args, { needsSchema: !isInMemory })
    // It is empty, and gone afterwards: a place to try things.
    if (isInMemory) await migrate(opened.driver, opened.database.schema)
    const paint = new Paint({ color, forPeople: isTerminal })
    const history = new History(isTerminal ? historyFile(process.env) : undefined)
    const session = new Session({
      services: servicesOf(opened.coordination),
      paint,
      tenant,
      timings: args.timings ?? isTerminal,
      print: (line) => void process.stdout.write(`${line}\n`),
      clear: () => void (isTerminal && process.stdout.write('\u001b[2J\u001b[3J\u001b[H')),
      inputs: () => history.entries,
    })
    const mask = createMask([...process.argv, process.env['DATABASE_URL']])
    const errors = isTerminal ? process.stdout : process.stderr
    const onError = (error: unknown) => {
      for (const line of faultLines(error, session.lastScript, paint, mask)) errors.write(`${line}\n`)
    }
    const stop = new AbortController()
    const stopListening = listenToSignals({
      onStop: () => stop.abort(new CancelledError()),
      onAbort: () => process.exit(exitCodes.interrupted),
      onEnd: () => process.exit(exitCodes.interrupted),
    })
    try {
      const { stdin: input, stdout: output } = process
      const { signal } = stop
      if (isTerminal) {
        output.write('Holdfast shell; "help" shows what can be typed, Ctrl-D leaves\n')
        await runInteractive({
          input,
          output,
          session,
          history,
          complete: async (line, pending) => await complete(session, line, pending),
          onError,
          signal,
        })
      } else {
        const isFine = await runPiped({ input, session, keepsGoing: args.continue === true, onError, signal })
        if (!isFine) process.exitCode = exitCodes.failed
        if (signal.aborted) process.exitCode = exitCodes.interrupted
      }
    } finally {
      await session.close()
      stopListening()
    }
  },
})
