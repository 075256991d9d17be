import type { Queryable, RawRow, WireValue } from '../driver/driver.ts'
import { mapError } from '../driver/postgres-error.ts'
import { ENDED, hasMethods, isThing, refuse } from './shape.ts'
import { sendMarked } from './transaction-mark.ts'

/** The subset of Prisma's client inside an interactive transaction that is used. */
interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: WireValue[]): Promise<readonly RawRow[]>
}

/** Prisma's code for everything about its transactions: ended, expired, unknown. */
const TRANSACTION_ERROR = 'P2028'

/**
 * The `tx` of Prisma's interactive transaction. It hides its connection, and a statement that was let in while
 * the transaction was open may reach PostgreSQL after the commit, so every statement is marked.
 */
export function recognisePrisma(tx: unknown): Queryable | undefined {
  if (!isThing(tx) || !hasMethods(tx, ['$queryRawUnsafe', '$executeRawUnsafe'])) return undefined
  // Prisma takes these away from the client that it gives to a transaction's callback.
  if (hasMethods(tx, ['$connect']) || hasMethods(tx, ['$disconnect'])) {
    throw refuse('it is a Prisma client: pass the "tx" that prisma.$transaction gives to its callback')
  }
  return usePrisma(tx as unknown as PrismaTransaction)
}

function usePrisma(tx: PrismaTransaction): Queryable {
  const send = async (text: string, values: readonly WireValue[]): Promise<readonly RawRow[]> =>
    await tx.$queryRawUnsafe(text, ...values)
  return {
    async query(text, values, { operation = 'statement', schema } = {}) {
      try {
        return await sendMarked(send, text, values)
      } catch (error) {
        if (isThing(error) && error['code'] === TRANSACTION_ERROR) throw refuse(ENDED, { cause: error })
        throw mapError(error, { operation, sent: true, repeatable: true, schema })
      }
    },
  }
}
