import path from 'node:path'
import { register } from 'tsx/esm/api'

/** `npm run histories -- --minutes 1 --seed 1`; `--help` lists the options. */

// In this process, not in a child: so Ctrl-C and exit codes need nobody to pass them on.
register()
await import(path.join(import.meta.dirname, '../test/histories/run.ts'))
