import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../support/migrated.ts'
import { type CodeBlock, codeBlocks, deadLinks, deadPaths, pages } from './markdown.ts'
import { packageEntries } from './public-api.ts'

/**
 * A ```ts block is a module of its own. One that begins with a line `// file: jobs.ts` can be imported by the
 * other blocks of its page as './jobs.ts'. A block is left out with ```ts nocheck and a first line
 * `// nocheck: reason`.
 */
function isChecked({ info }: CodeBlock): boolean {
  return /^(ts|typescript)$/.test(info)
}

function withoutReason({ info, code }: CodeBlock): boolean {
  return /^(ts|typescript)\s+\S/.test(info) && !(/\snocheck$/.test(info) && /^\/\/ nocheck: \S/.test(code))
}

/** What tsc has to say about `blocks`, with page and line; empty if they all compile. */
function compile(blocks: readonly CodeBlock[]): string[] {
  // Inside the repository, so that packages are found, and in a folder that git, linters and tests pass over.
  const parent = path.join(root, '.holdfast')
  fs.mkdirSync(parent, { recursive: true })
  const dir = fs.mkdtempSync(path.join(parent, 'docs-'))
  try {
    const written = new Map(blocks.map((block) => [writeBlock(dir, block), block]))
    fs.writeFileSync(path.join(dir, 'package.json'), '{ "type": "module" }')
    fs.writeFileSync(path.join(dir, 'tsconfig.json'), JSON.stringify(configOf(written.keys())))
    const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', dir, '--pretty', 'false'], {
      cwd: dir,
      encoding: 'utf8',
    })
    return stdout
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => located(line, written))
  } finally {
    fs.rmSync(dir, { recursive: true })
  }
}

/** Writes a block at the lines it has in its page, and gives its path in `dir`. */
function writeBlock(dir: string, { page, line, code }: CodeBlock): string {
  const name = /^\/\/ file: (\S+)$/m.exec(code.split('\n', 1)[0] ?? '')?.[1] ?? `line-${line}.ts`
  const file = path.join(page.replaceAll(/[/.]/g, '-'), name)
  const target = path.join(dir, file)
  if (fs.existsSync(target)) throw new Error(`${page}:${line}: a second block called ${name}`)
  fs.mkdirSync(path.dirname(target), { recursive: true })
  fs.writeFileSync(target, `${'\n'.repeat(line - 1)}${code}\nexport {}\n`)
  return file
}

function configOf(files: Iterable<string>): unknown {
  return {
    extends: path.join(root, 'tsconfig.json'),
    compilerOptions: {
      rootDir: root,
      // An example may show a value without using it.
      noUnusedLocals: false,
      noUnusedParameters: false,
      declaration: false,
      typeRoots: [path.join(root, 'node_modules/@types')],
      paths: Object.fromEntries(
        packageEntries().map(({ specifier, file }) => [specifier, [path.join(root, file)]]),
      ),
    },
    include: [],
    files: [...files],
  }
}

function located(line: string, written: ReadonlyMap<string, CodeBlock>): string {
  const [, file = '', at = '', message = ''] = /^(.*)\((\d+),\d+\): (.*)$/.exec(line) ?? []
  const block = written.get(file)
  return block ? `${block.page}:${at}: ${message}` : line
}

describe('the documents', () => {
  const all = pages()
  const blocks = all.flatMap(codeBlocks)

  it('have TypeScript that compiles against the package', () => {
    const checked = blocks.filter(isChecked)
    expect(checked.length).toBeGreaterThan(0)
    expect(compile(checked)).toEqual([])
  })

  it('leave no TypeScript unchecked without a reason', () => {
    expect(blocks.filter(withoutReason).map(({ page, line }) => `${page}:${line}`)).toEqual([])
  })

  it('link to nothing that does not exist', () => {
    expect(all.flatMap(deadLinks)).toEqual([])
  })

  it('name no file that does not exist', () => {
    expect(all.flatMap(deadPaths)).toEqual([])
  })
})

describe('the checks themselves', () => {
  const page = (text: string) => ({ file: 'docs/x.md', text })

  it('compile blocks with the page’s lines, and let them import each other', () => {
    const text =
      '# X\n\n```ts\n// file: one.ts\nexport const one = 1\n```\n\n```ts\nimport { one } from "./one.ts"\nconst two: string = one\n```\n'
    const errors = compile(codeBlocks(page(text)).filter(isChecked))
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatch(/^docs\/x\.md:10: .*TS2322/)
  })

  it('see blocks left out without a reason', () => {
    const left = (info: string, code: string) =>
      codeBlocks(page(`\`\`\`${info}\n${code}\n\`\`\``)).filter(withoutReason)
    expect(left('ts nocheck', 'x')).toHaveLength(1)
    expect(left('ts ignore', '// nocheck: why')).toHaveLength(1)
    expect(left('ts nocheck', '// nocheck: shows the old API\nx')).toEqual([])
    expect(left('ts', 'x')).toEqual([])
  })

  it('see dead links, headings and paths, and pass over code', () => {
    expect(deadLinks(page('[a](nowhere.md) [b](../package.json) [c](https://example.com/x)'))).toHaveLength(1)
    expect(deadLinks(page('# The `one` thing\n[a](#the-one-thing) [b](#another)'))).toHaveLength(1)
    expect(deadLinks(page('```md\n[a](nowhere.md)\n```'))).toEqual([])
    expect(deadPaths(page('`src/nowhere.ts` and `scripts/test.mjs` and `scripts/*.mjs`'))).toHaveLength(1)
    expect(deadPaths(page('`nowhere/*.ts` `src/nowhere/<name>.ts`'))).toHaveLength(1)
  })
})
