/** Runs a statement; gives its rows. */
export type RunSql = (
  text: string,
  params?: readonly unknown[],
) => Promise<readonly Readonly<Record<string, unknown>>[]>

/** A change of one function of the schema. */
export interface FunctionEdit {
  /** Its name, without the schema. There must be one of that name. */
  readonly name: string
  /** Has to be in what PostgreSQL shows of the function, `times` times. */
  readonly find: string
  readonly replace: string
  /** Two where ephemeral and persistent keys have code of their own. Default: 1. */
  readonly times?: number
}

/**
 * Replaces functions of a migrated database by what `edits` make of them.
 *
 * @throws {Error} An edit does not fit any more: the function was changed, or moved.
 */
export async function breakFunctions(sql: RunSql, edits: readonly FunctionEdit[]): Promise<void> {
  for (const { name, find, replace, times = 1 } of edits) {
    const rows = await sql(
      `select pg_get_functiondef(p.oid) as text from pg_proc p
       where p.pronamespace = 'holdfast'::regnamespace and p.proname = $1`,
      [name],
    )
    if (rows.length !== 1) throw new Error(`${rows.length} functions are called ${name}`)
    const text = String(rows[0]?.['text'])
    const parts = text.split(find)
    if (parts.length !== times + 1)
      throw new Error(
        `the control does not fit ${name} any more: "${find}" is there ${parts.length - 1} times`,
      )
    await sql(parts.join(replace))
  }
}
