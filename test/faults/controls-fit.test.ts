import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, it } from 'vitest'
import type { Control } from '../chaos/controls/control.ts'
import { controls } from '../chaos/controls.ts'
import { applyEdit, copyPackage, type Edit } from '../chaos/package-copy.ts'
import { type Control as HistoryControl, controls as historyControls } from '../histories/controls.ts'

/** Of chaos and of histories: what they take out of the library's own code. */
const all: readonly (readonly [string, readonly Edit[]])[] = [
  ...Object.entries<Control>(controls).map(([name, { edits }]) => [name, edits] as const),
  ...Object.entries<HistoryControl>(historyControls).map(([name, { edits = [] }]) => [name, edits] as const),
]

it('every negative control of the chaos run and of histories still fits the statement it takes something out of', () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-controls-'))
  try {
    const { dir: copy } = copyPackage(path.join(dir, 'package'))
    const stale = all.flatMap(([name, edits]) =>
      edits.flatMap((edit) => {
        const file = path.join(copy, edit.file.replace(/\.ts$/, '.js'))
        const sound = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : undefined
        try {
          applyEdit(copy, edit)
          return []
        } catch (error) {
          return [`${name}: ${(error as Error).message}`]
        } finally {
          if (sound !== undefined) fs.writeFileSync(file, sound)
        }
      }),
    )
    expect(stale).toEqual([])
  } finally {
    fs.rmSync(dir, { recursive: true, force: true })
  }
})
