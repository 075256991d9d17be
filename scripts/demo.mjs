import { register } from 'tsx/esm/api'
import { ensureBuilt } from './built.mjs'

// Runs examples/shop on the package as its users get it.
if (!ensureBuilt()) process.exit(1)

// In this process, not in a child: so Ctrl-C and exit codes need nobody to pass them on.
register()
await import('../examples/shop/main.ts')
