import { usageError } from '../cli-error.ts'

const WORD = /'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`([^`]*)`|([^\s'"`]+)/y

/**
 * The words of a command: parted by blanks; quotes of any of the three kinds hold a word together, and `\` stands before a
 * quote or itself in the first two.
 *
 * @throws {CliError} A quote has no end.
 */
export function wordsOf(text: string): readonly string[] {
  const words: string[] = []
  let at = 0
  while (at < text.length) {
    if (/\s/.test(text[at] ?? '')) {
      at += 1
      continue
    }
    let word = ''
    // Parts without a blank between them are one word: prefix"with blanks".
    while (at < text.length && !/\s/.test(text[at] ?? '')) {
      WORD.lastIndex = at
      const found = WORD.exec(text)
      if (found === null) throw usageError(`the quote ${text[at]} has no end`)
      const [whole, single, double, back, plain] = found
      const quoted = single ?? double
      word += quoted === undefined ? (back ?? plain ?? '') : quoted.replace(/\\(['"\\])/g, '$1')
      at += whole.length
    }
    words.push(word)
  }
  return words
}

/** The first word, if it is written as a command is: letters and dashes. */
export function firstWord(text: string): string | undefined {
  return /^\s*([a-z][a-z-]*)(?=\s|$)/i.exec(text)?.[1]?.toLowerCase()
}
