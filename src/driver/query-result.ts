/** Rows of a statement of yours, as your driver gives them. */
export interface QueryResult<R = Record<string, unknown>> {
  readonly rows: readonly R[]
  /** Rows that were read, inserted, updated or deleted. */
  readonly rowCount: number
}
