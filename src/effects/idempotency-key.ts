import { createHash } from 'node:crypto'

/**
 * What a provider is given to tell a repetition by: 43 characters of base64url, a SHA-256 of tenant, effect and key. The
 * same for every attempt, job and process that means the same effect, now and in years.
 */
export function idempotencyKeyOf(tenant: string, effect: string, key: string): string {
  return createHash('sha256')
    .update(JSON.stringify([tenant, effect, key]))
    .digest('base64url')
}
