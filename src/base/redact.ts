const MASK = '***'

/** `scheme://` up to the last `@` before the path: a password may itself hold `@`, `:` or be percent-encoded. */
const URL_CREDENTIALS = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/?#"'<>]{1,1024}@/giu
/** The same where a password holds `/`, `?` or `#` unencoded, which makes the address invalid but no less secret. */
const BROKEN_URL_CREDENTIALS = /\b(postgres(?:ql)?:\/{0,3})[^\s"'<>]{1,1024}@/giu
/** An address that was itself percent-encoded, as a parameter of another. */
const ENCODED_URL_CREDENTIALS = /\b(postgres(?:ql)?%3a%2f%2f)[^\s"'<>]{1,1024}?%40/giu
const NAMED_SECRET =
  /(["']?\b(?:[a-z0-9_-]{0,40}(?:password|passwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token)|pwd)\b["']?\s{0,9}[=:]\s{0,9})("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[^\s&,;)}\]]+)/giu
const TOKEN_PARAMETER = /([?&](?:token|key|sig|signature)=)[^\s&#"']+/giu
const AUTHORIZATION =
  /(\b(?:proxy-)?authorization\b["']?\s{0,9}[=:]\s{0,9}["']?)(?:(?:bearer|basic|token|digest)\s{1,9})?[^\s"',;]+/giu
const BEARER = /\b(bearer|basic)\s{1,9}[a-z0-9._~+/=-]{8,}/giu

/**
 * Masks what looks like a secret in `text`: credentials in addresses of any scheme, `password=…` and its
 * relatives in any case, `authorization` headers. Takes time linear in the text; text without such parts is
 * returned unchanged.
 */
export function redactText(text: string): string {
  return text
    .replace(BROKEN_URL_CREDENTIALS, `$1${MASK}@`)
    .replace(URL_CREDENTIALS, `$1${MASK}@`)
    .replace(ENCODED_URL_CREDENTIALS, `$1${MASK}%40`)
    .replace(AUTHORIZATION, `$1${MASK}`)
    .replace(BEARER, `$1 ${MASK}`)
    .replace(NAMED_SECRET, `$1${MASK}`)
    .replace(TOKEN_PARAMETER, `$1${MASK}`)
}
