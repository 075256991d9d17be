import fs from 'node:fs'
import path from 'node:path'
import type { ColumnType, Operation, ParamType } from '../../src/driver/operation.ts'
import { root } from '../support/migrated.ts'

export type AnyOperation = Operation<Record<string, ParamType>, Record<string, ColumnType>>

export interface FoundOperation {
  readonly file: string
  readonly operation: AnyOperation
}

/** Every operation under `src/**` in a folder named `sql`. */
export async function readOperations(): Promise<readonly FoundOperation[]> {
  const files = fs
    .readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /(^|\/)sql\/[^/]+\.ts$/.test(file) && !file.endsWith('.test.ts'))
    .sort()
  const found = await Promise.all(
    files.map(async (file) => {
      const module = (await import(path.join(root, 'src', file))) as Record<string, unknown>
      return Object.values(module)
        .filter(isOperation)
        .map((operation) => ({ file: `src/${file}`, operation }))
    }),
  )
  return found.flat()
}

function isOperation(value: unknown): value is AnyOperation {
  return typeof value === 'object' && value !== null && 'statement' in value && 'columns' in value
}
