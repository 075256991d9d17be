import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import { configsOfPostgresJs } from './postgres-js-options.ts'

type Options = postgres.Options<Record<string, postgres.PostgresType>>

function configs(given: string | Options) {
  const instance = typeof given === 'string' ? postgres(given) : postgres(given)
  return configsOfPostgresJs(instance, 'holdfast test')
}

describe('connections as an instance of postgres.js makes them', () => {
  it('go to the same host, port and database with the same credentials', () => {
    expect(configs('postgres://u%40:p%2F@db.example:6000/d%20b')).toEqual([
      expect.objectContaining({
        host: 'db.example',
        port: 6000,
        user: 'u@',
        password: 'p/',
        ssl: false,
        application_name: 'holdfast test',
      }),
    ])
    expect(configs({ host: 'h', username: 'u', database: 'd' })).toEqual([
      expect.objectContaining({ host: 'h', port: 5432, user: 'u', database: 'd' }),
    ])
  })

  it('go to several hosts in turn, none for long', () => {
    const many = configs('postgres://u@h1:1,h2:2/d')

    expect(many.map(({ host, port }) => `${host}:${port}`)).toEqual(['h1:1', 'h2:2'])
    expect(many.every(({ connectionTimeoutMillis }) => connectionTimeoutMillis <= 3000)).toBe(true)
  })

  it('go to a socket by its folder', () => {
    expect(configs({ host: '/run/pg', port: 5433 })).toEqual([
      expect.objectContaining({ host: '/run/pg', port: 5433 }),
    ])
    expect(() => configs({ path: '/run/other' })).toThrow(expect.objectContaining({ field: 'database' }))
  })

  it('are encrypted as they are there', () => {
    const sslOf = (ssl: Options['ssl']) =>
      configs({ host: 'h', ...(ssl === undefined ? {} : { ssl }) }).map((config) => config.ssl)

    expect(sslOf(undefined)).toEqual([false])
    expect(sslOf('require')).toEqual([{ rejectUnauthorized: false }])
    expect(sslOf('prefer')).toEqual([{ rejectUnauthorized: false }, false])
    expect(sslOf('verify-full')).toEqual([true])
    expect(sslOf({ ca: 'x' })).toEqual([{ ca: 'x' }])
  })

  it('ask for the password when it is a function', () => {
    const password = () => 'secret'

    expect(configs({ host: 'h', password })[0]).toHaveProperty('password', password)
  })
})
