/** Facts that go with a log line: plain data. */
export type LogFields = Readonly<Record<string, unknown>>

/** Where `ctx.log` and the command write. Bring your own, or take `createLogger`. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

/** Says nothing: a library does not write to somebody's terminal unless told to. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** A logger that adds `fields` to each line of `logger`, and that cannot throw. */
export function withFields(logger: Logger, fields: LogFields): Logger {
  const write = (level: keyof Logger) => (message: string, more?: LogFields) => {
    try {
      logger[level](message, { ...fields, ...more })
    } catch {
      // A logger's fault must not become a job's.
    }
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}
