/** What each process of the shop is told by its environment; `main.ts` sets it for all of them. */
export interface Settings {
  /** Where PostgreSQL is. Unset: an embedded database in `embeddedDatabaseFolder`. */
  readonly databaseUrl: string | undefined
  readonly embeddedDatabaseFolder: string
  readonly smtpPort: number
  /** The name a worker gives the mail server in EHLO: from outside, the only way to tell who sent a mail. */
  readonly workerName: string
}

export function readSettings(env: NodeJS.ProcessEnv = process.env): Settings {
  return {
    databaseUrl: env.DATABASE_URL,
    embeddedDatabaseFolder: env.SHOP_EMBEDDED_DATABASE ?? './.holdfast',
    smtpPort: Number(env.SHOP_SMTP_PORT ?? 2525),
    workerName: env.SHOP_WORKER ?? 'shop',
  }
}

export function toEnvironment(settings: Partial<Settings>): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {}
  if (settings.databaseUrl !== undefined) env.DATABASE_URL = settings.databaseUrl
  if (settings.embeddedDatabaseFolder !== undefined)
    env.SHOP_EMBEDDED_DATABASE = settings.embeddedDatabaseFolder
  if (settings.smtpPort !== undefined) env.SHOP_SMTP_PORT = String(settings.smtpPort)
  if (settings.workerName !== undefined) env.SHOP_WORKER = settings.workerName
  return env
}
