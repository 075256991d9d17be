import { expect, it } from 'vitest'
import { packageEntries, publicNames } from './public-api.ts'

it('changes no public name but on purpose (a wanted change: npx vitest run --project contracts -u)', async () => {
  const entries = packageEntries()
  const text = entries.map(
    ({ specifier, file }) =>
      `${specifier}\n${publicNames(file)
        .map(({ name, kind }) => `  ${kind === 'type' ? 'type ' : ''}${name}\n`)
        .join('')}`,
  )
  expect(entries.length).toBeGreaterThan(0)
  await expect(text.join('\n')).toMatchFileSnapshot('exports.snap.txt')
})

it.each(packageEntries())('exports the values from $specifier that its text says', async ({ file }) => {
  const module = (await import(/* @vite-ignore */ `../../${file}`)) as Record<string, unknown>
  const said = publicNames(file).filter(({ kind }) => kind === 'value')
  expect(Object.keys(module).sort()).toEqual(said.map(({ name }) => name).sort())
})
