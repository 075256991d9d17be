const CONTROL = /[\p{Cc}\u2028\u2029]/gu

/** A text of somebody else's as one line, with nothing in it that a terminal would obey: controls become `\u001b`. */
export function oneLine(text: string): string {
  return text.replace(CONTROL, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
