import { type OwnTransaction, onPostgres } from '../conformance/subjects/subject.ts'
import { generatedClient } from './install.ts'

/** The subset of the generated client that is used: it is there only when the tests run, after `install.ts`. */
interface Client {
  $transaction<T>(fn: (tx: Transaction) => Promise<T>, options: { readonly timeout: number }): Promise<T>
  $disconnect(): Promise<void>
}

interface Transaction {
  $executeRawUnsafe(text: string): Promise<number>
  /** Inside a transaction: a savepoint. */
  $transaction<T>(fn: (tx: Transaction) => Promise<T>): Promise<T>
}

type ClientClass = new (options: { readonly adapter: unknown }) => Client
type AdapterClass = new (options: { readonly connectionString: string }) => unknown

async function connect(url: string): Promise<Client> {
  const adapter: string = new URL('node_modules/@prisma/adapter-pg/dist/index.mjs', import.meta.url).href
  const { PrismaPg } = (await import(adapter)) as { PrismaPg: AdapterClass }
  const { PrismaClient } = (await import(generatedClient)) as { PrismaClient: ClientClass }
  return new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
}

export const prisma = onPostgres({ name: 'Prisma' }, async ({ url }) => {
  const client = await connect(url)
  return {
    transaction: async (fn) =>
      await client.$transaction(async (tx) => await fn(ownOf(tx)), { timeout: 30_000 }),
    mistakes: { 'a client': { tx: client, says: /Prisma client: .*prisma\.\$transaction/ } },
    end: async () => await client.$disconnect(),
  }
})

function ownOf(tx: Transaction): OwnTransaction {
  return {
    tx,
    query: async (text) => await tx.$executeRawUnsafe(text),
    savepoint: async (fn) => await tx.$transaction(async (inner) => await fn(ownOf(inner))),
  }
}
