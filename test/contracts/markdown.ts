import fs from 'node:fs'
import path from 'node:path'
import { root } from '../support/migrated.ts'
import { readFiles, type SourceFile } from './source.ts'

/** A fenced block of a page. */
export interface CodeBlock {
  readonly page: string
  /** Line of its first line of code, counted from 1. */
  readonly line: number
  /** What follows the fence: `ts`, `ts nocheck`, `sh`. */
  readonly info: string
  readonly code: string
}

/** README.md, the other pages at the root, and all below `docs/`. */
export function pages(): SourceFile[] {
  const atRoot = fs.readdirSync(root).filter((file) => file.endsWith('.md'))
  const below = fs.existsSync(path.join(root, 'docs'))
    ? readFiles('docs', (file) => file.endsWith('.md'))
    : []
  return [...atRoot.map((file) => ({ file, text: fs.readFileSync(path.join(root, file), 'utf8') })), ...below]
}

export function codeBlocks({ file, text }: SourceFile): CodeBlock[] {
  const blocks: CodeBlock[] = []
  let open: { fence: string; info: string; line: number; code: string[] } | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const [, fence = '', info = ''] = /^\s*(`{3,}|~{3,})(.*)$/.exec(line) ?? []
    if (open === undefined) {
      if (fence !== '') open = { fence, info: info.trim(), line: index + 2, code: [] }
    } else if (fence.startsWith(open.fence) && info.trim() === '') {
      blocks.push({ page: file, line: open.line, info: open.info, code: open.code.join('\n') })
      open = undefined
    } else {
      open.code.push(line)
    }
  }
  return blocks
}

/** The text with its fenced blocks blanked, line for line. */
export function withoutBlocks({ text }: SourceFile): string {
  return text.replace(/^(\s*)(`{3,}|~{3,})[\s\S]*?^\s*\2\s*$/gm, (block) => block.replace(/[^\n]/g, ''))
}

/** Links to places of this repository that do not exist. */
export function deadLinks(page: SourceFile): string[] {
  const links = withoutBlocks(page).matchAll(/\]\(<?([^)<>\s]+)>?(?:\s+"[^"]*")?\)/g)
  return [...links].flatMap(([, target = '']) => {
    if (/^[a-z][a-z+.-]*:/i.test(target)) return []
    const [file = '', anchor] = target.split('#')
    const linked = file === '' ? page.file : path.posix.join(path.posix.dirname(page.file), decodeURI(file))
    if (linked !== page.file && !fs.existsSync(path.join(root, linked)))
      return [`${page.file} links to ${target}, which does not exist`]
    if (anchor === undefined || !linked.endsWith('.md')) return []
    const text = linked === page.file ? page.text : fs.readFileSync(path.join(root, linked), 'utf8')
    return anchors(text).includes(anchor)
      ? []
      : [`${page.file} links to ${target}, a heading that does not exist`]
  })
}

/** Names that the headings of a page get as link targets on the usual forges. */
function anchors(text: string): string[] {
  const seen = new Map<string, number>()
  return [...text.matchAll(/^#{1,6}\s+(.*)$/gm)].map(([, heading = '']) => {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-')
    const times = seen.get(slug) ?? 0
    seen.set(slug, times + 1)
    return times === 0 ? slug : `${slug}-${times}`
  })
}

/** Paths named in inline code, in folders of this repository, that do not exist. Patterns count by their fixed part. */
export function deadPaths(page: SourceFile): string[] {
  const inline = withoutBlocks(page).matchAll(
    /`((?:src|test|docs|scripts|sql|examples|bench|dashboard|\.ci)\/[^`\s]*)`/g,
  )
  return [...inline].flatMap(([, mentioned = '']) => {
    const fixed = mentioned.replace(/:\d+$/, '').split(/[*<{…]/)[0] ?? ''
    const complete = fixed === mentioned.replace(/:\d+$/, '')
    const wanted = complete ? fixed : path.posix.dirname(`${fixed}x`)
    return fs.existsSync(path.join(root, wanted))
      ? []
      : [`${page.file} names ${mentioned}, which does not exist`]
  })
}
