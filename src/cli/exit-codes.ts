/**
 * Exit codes of the command: what a supervisor or script can rely on. `docs/reference/cli.md` has the same table.
 */
export const exitCodes = {
  /** Done. A worker: it was asked to stop, and stopped cleanly. */
  done: 0,
  /** It failed, and standard error says why: no such job, a conflict, the database cannot be reached. */
  failed: 1,
  /** The command line, the app file or the application cannot be right. Trying again does not help. */
  usage: 2,
  /** The schema is missing, too old or too new for this release: migrate, or deploy the one that fits. */
  schema: 4,
  /** A worker gave up on a handler that does not return; it ended the rest cleanly. Start it again. */
  restart: 75,
  /** Interrupted a third time: it ended at once; what ran is rescued when its lease is over. A shell: while it read piped input. */
  interrupted: 130,
} as const
