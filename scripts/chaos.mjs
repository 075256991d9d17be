import path from 'node:path'
import { register } from 'tsx/esm/api'

/** `npm run chaos -- --minutes 3 --seed 1`; `--help` lists the options. */

// In this process, not in a child: so Ctrl-C and exit codes need nobody to pass them on.
register()
await import(path.join(import.meta.dirname, '../test/chaos/run.ts'))
