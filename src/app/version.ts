import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { packageFile } from '../base/package-files.ts'

/** Version of this package. */
export const { version } = createRequire(import.meta.url)(fileURLToPath(packageFile('package.json'))) as {
  readonly version: string
}
