import fs from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../support/migrated.ts'

/** Named tests in a page: `file`: "title". */
function namedTests(text: string): { readonly file: string; readonly title: string }[] {
  const named = text.matchAll(
    /`((?:src|test)\/[^`]+\.test\.ts)`: "([^"]*(?:"[^"|<]*"[^"|<]*)*)"(?=\s*(?:<br>|\|))/g,
  )
  return [...named].map(([, file = '', title = '']) => ({ file, title }))
}

/** Those of them that their file does not have, as the title of a test. */
function missing(text: string): string[] {
  return namedTests(text)
    .filter(({ file, title }) => {
      const full = path.join(root, file)
      if (!fs.existsSync(full)) return true
      const source = fs.readFileSync(full, 'utf8').replaceAll("\\'", "'")
      return !['"', "'", '`'].some((quote) => source.includes(`${quote}${title}${quote}`))
    })
    .map(({ file, title }) => `${file}: ${title}`)
}

it('every test that docs/reliability.md names for a promise exists, under that very title', () => {
  const text = fs.readFileSync(path.join(root, 'docs/reliability.md'), 'utf8')
  const mentions = text.match(/`(?:src|test)\/[^`]+\.test\.ts`: "/g) ?? []
  expect(mentions.length).toBeGreaterThan(20)
  expect(namedTests(text)).toHaveLength(mentions.length)
  expect(missing(text)).toEqual([])
})

it('a title that no test has is seen', () => {
  const file = 'test/contracts/promises.test.ts'
  expect(missing(`| \`${file}\`: "a title that no test has is seen" |`)).toEqual([])
  expect(missing(`| \`${file}\`: "a title that is nowhere${''}" |`)).toHaveLength(1)
  expect(missing('| `test/nowhere.test.ts`: "a title" |')).toHaveLength(1)
})
