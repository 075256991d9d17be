/** Folder of this package. This module lies two folders deep in it, as source and in `dist/chunks/`. */
const root = new URL('../../', import.meta.url)

/** True where the sources run as they are, as in our own tests; false in `dist/`. */
export const isSource = import.meta.url.endsWith('.ts')

/** A file that comes with the package, by its path from the package's folder. */
export function packageFile(path: string): URL {
  return new URL(path, root)
}

/** A program of ours that runs in a thread or process of its own, by its path in `src/`, without the extension. */
export function packageProgram(path: string): URL {
  return packageFile(isSource ? `src/${path}.ts` : `dist/${path}.js`)
}
