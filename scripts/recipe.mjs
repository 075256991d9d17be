import { existsSync } from 'node:fs'
import { register } from 'tsx/esm/api'
import { ensureBuilt } from './built.mjs'

// `npm run recipe -- NAME [options]`: runs examples/recipes/NAME on the package as its users get it.
const [name = ''] = process.argv.splice(2, 1)
const main = new URL(`../examples/recipes/${name}/main.ts`, import.meta.url)
if (!/^[a-z-]+$/.test(name) || !existsSync(main)) {
  console.error(
    'Usage: npm run recipe -- NAME [--quick] [--unguarded] [--seed N]: see examples/recipes/README.md',
  )
  process.exit(2)
}
if (!ensureBuilt()) process.exit(1)

// In this process, not in a child: so Ctrl-C and exit codes need nobody to pass them on.
register()
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
await import(main.href)
