import { parseArgs } from 'node:util'
import { type App, defineApp } from 'holdfast'
import { startPostgres } from '../../../scripts/postgres-server.ts'

/** What a recipe is given to show itself. */
export interface Stage {
  /** Address of a database that has Holdfast's schema. */
  readonly url: string
  readonly app: App
  /** True for a short run, as tests want it. */
  readonly quick: boolean
  /** True to leave out what the recipe is about, and see its promise broken. */
  readonly unguarded: boolean
  readonly seed: number
  readonly variant: string
  readonly say: (text: string) => void
  /** Says whether a promise was kept; the run fails if one was not. */
  readonly check: (promise: string, kept: boolean) => void
}

export interface RecipeOptions {
  /** Connections of `stage.app`. Default: 10. */
  readonly connections?: number
  /** The first is the default. Default: one. */
  readonly variants?: readonly string[]
}

/** A recipe that hangs has failed. */
const TIME_LIMIT_MS = 100_000

/**
 * Runs a recipe on the database of DATABASE_URL, or on a PostgreSQL of its own. Ends the process, with exit code 0 if all promises
 * that were checked are kept and 1 if one is broken, or none was checked.
 */
export async function runRecipe(
  show: (stage: Stage) => Promise<void>,
  { connections, variants = [''] }: RecipeOptions = {},
): Promise<void> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      unguarded: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      variant: { type: 'string', default: variants[0] ?? '' },
    },
  })
  if (!variants.includes(values.variant)) throw new Error(`--variant can be ${variants.join(', ')}`)
  const watchdog = setTimeout(() => {
    console.log(`broken  it ends within ${TIME_LIMIT_MS / 1000} s`)
    process.exit(1)
  }, TIME_LIMIT_MS)

  const server = process.env.DATABASE_URL === undefined ? await startPostgres() : undefined
  const url = server?.url() ?? String(process.env.DATABASE_URL)
  const app = defineApp({ name: 'recipe', database: url, jobs: [], maxConnections: connections })
  const kept: boolean[] = []
  try {
    await app.migrate()
    await show({
      url,
      app,
      quick: values.quick,
      unguarded: values.unguarded,
      seed: Number(values.seed),
      variant: values.variant,
      say: (text) => console.log(text),
      check: (promise, isKept) => {
        console.log(`${isKept ? 'kept   ' : 'broken '} ${promise}`)
        kept.push(isKept)
      },
    })
  } finally {
    clearTimeout(watchdog)
    await app.close()
    await server?.stop()
  }
  // Actors that still live, of a recipe that gave up early, would keep this process waiting.
  process.exit(kept.length > 0 && kept.every(Boolean) ? 0 : 1)
}
