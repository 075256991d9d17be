/** What each process of the shop is told by its environment; `main.ts` sets it for all of them. */
export interface Settings {
  /** Where PostgreSQL is. Unset: an embedded database in `embeddedDatabaseFolder`. */
  readonly databaseUrl: string | undefined
  readonly embeddedDatabaseFolder: string
  /** SMTP port of the mail provider, which deduplicates by key. */
  readonly providerPort: number
  /** SMTP port of the plain mail server. */
  readonly plainPort: number
  /** HTTP port at which the plain mail server tells whether it has a message. */
  readonly inquiryPort: number
  /** The name a worker gives a mail server in EHLO: from outside, the only way to tell who sent a mail. */
  readonly workerName: string
}

export function readSettings(env: NodeJS.ProcessEnv = process.env): Settings {
  return {
    databaseUrl: env.DATABASE_URL,
    embeddedDatabaseFolder: env.SHOP_EMBEDDED_DATABASE ?? './.holdfast',
    providerPort: Number(env.SHOP_PROVIDER_PORT ?? 2525),
    plainPort: Number(env.SHOP_PLAIN_PORT ?? 2526),
    inquiryPort: Number(env.SHOP_INQUIRY_PORT ?? 2580),
    workerName: env.SHOP_WORKER ?? 'shop',
  }
}

export function toEnvironment(settings: Partial<Settings>): NodeJS.ProcessEnv {
  const texts: Readonly<Record<string, string | number | undefined>> = {
    DATABASE_URL: settings.databaseUrl,
    SHOP_EMBEDDED_DATABASE: settings.embeddedDatabaseFolder,
    SHOP_PROVIDER_PORT: settings.providerPort,
    SHOP_PLAIN_PORT: settings.plainPort,
    SHOP_INQUIRY_PORT: settings.inquiryPort,
    SHOP_WORKER: settings.workerName,
  }
  const given = Object.entries(texts).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]))
}
