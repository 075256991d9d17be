import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, it } from 'vitest'
import type { Control } from '../chaos/controls/control.ts'
import { controls } from '../chaos/controls.ts'
import { applyEdit, copyPackage } from '../chaos/package-copy.ts'

it('every negative control of the chaos run still fits the statement it takes something out of', () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-controls-'))
  try {
    const { dir: copy } = copyPackage(path.join(dir, 'package'))
    const stale = Object.entries<Control>(controls).flatMap(([name, { edits }]) =>
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
}, 60_000)
