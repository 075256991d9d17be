import os from 'node:os'

/** Who runs the command, for the audit. */
export function userName(): string {
  try {
    return os.userInfo().username
  } catch {
    // A user id without an entry.
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
