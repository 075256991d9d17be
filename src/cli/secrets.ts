import { redactText } from '../base/redact.ts'

/** `scheme:user:password@` with any number of slashes, or none: an address that is mistyped is no less secret. */
const CREDENTIALS = /^[a-z][a-z0-9+.:-]*?:\/*[^:/@]*:(.+)@/i
/** `user:password@`, where the scheme was forgotten. */
const BARE_CREDENTIALS = /^[^:/@]*:(.+)@/

/** True for what is an address, however it is spelled, and so no file and no name. */
export function looksLikeAddress(text: string): boolean {
  return /^(pglite:|[a-z][a-z0-9+.-]*:\/|jdbc:)/i.test(text) || BARE_CREDENTIALS.test(text)
}

/**
 * A function that masks secrets in a text: what looks like one, and each password of the addresses given, raw or
 * percent-encoded, wherever it stands.
 */
export function createMask(addresses: readonly (string | undefined)[]): (text: string) => string {
  const secrets = addresses.flatMap((address) => passwordsOf(address ?? ''))
  return (text) => redactText(secrets.reduce((masked, secret) => masked.replaceAll(secret, '***'), text))
}

function passwordsOf(address: string): readonly string[] {
  const parameter = /[?&](?:password|sslpassword)=([^&#]+)/i.exec(address)?.[1]
  const credentials = [CREDENTIALS, BARE_CREDENTIALS].map((pattern) => pattern.exec(address)?.[1])
  const raw = [...credentials, parameter].filter((found) => found !== undefined)
  return raw.flatMap((secret) => {
    try {
      return [secret, decodeURIComponent(secret), encodeURIComponent(secret)]
    } catch {
      // Not well encoded: then it is used as it is, if at all.
      return [secret, encodeURIComponent(secret)]
    }
  })
}
