import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type PostgresServer, startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { Inspector } from './audit.ts'
import type { Control } from './controls/control.ts'
import { type ControlName, controls } from './controls.ts'
import { type Library, loadLibrary } from './library.ts'
import { copyPackage } from './package-copy.ts'
import { runChaos } from './run-chaos.ts'
import { SceneStage } from './scenes/stage.ts'
import { type SceneName, scenes } from './scenes.ts'

export interface ControlResult {
  readonly name: ControlName
  readonly control: Control
  readonly caught: boolean
  /** What noticed, or why nothing did. */
  readonly finding: string
  readonly tookMs: number
}

/** Breaks the library by each control and tells whether what must notice did. First every scene has to pass on the sound library. */
export async function runControls(
  names: readonly ControlName[],
  onResult: (result: ControlResult) => void,
): Promise<boolean> {
  await using server = await startPostgres({ settings: { ...volatileSettings, max_connections: 100 } })
  await requireSoundScenes(server)
  let all = true
  for (const name of names) {
    const control: Control = controls[name]
    const fromMs = performance.now()
    const finding = await ('scene' in control.caughtBy
      ? playBroken(server, control, control.caughtBy.scene)
      : runBroken(control, control.caughtBy.chaos))
    onResult({
      name,
      control,
      caught: finding !== undefined,
      finding: finding ?? 'nothing noticed',
      tookMs: performance.now() - fromMs,
    })
    all &&= finding !== undefined
  }
  return all
}

async function requireSoundScenes(server: PostgresServer): Promise<void> {
  await withCopy([], async (library) => {
    for (const name of Object.keys(scenes) as SceneName[]) await playScene(server, library, name)
  })
}

async function playBroken(
  server: PostgresServer,
  control: Control,
  scene: SceneName,
): Promise<string | undefined> {
  return await withCopy(control.edits, async (library) => {
    try {
      await playScene(server, library, scene)
      return undefined
    } catch (error) {
      if (isBadSql(error))
        throw new Error('the control makes a statement that PostgreSQL cannot read', { cause: error })
      return `scene ${scene}: ${firstLine(error)}`
    }
  })
}

async function runBroken(
  control: Control,
  settings: { readonly minutes: number; readonly drainMs: number; readonly pace?: object },
): Promise<string | undefined> {
  const report = await runChaos({ seed: 1, ...settings, edits: control.edits })
  fs.rmSync(report.artifacts, { recursive: true, force: true })
  const bad = report.workerErrors.find((error) => /SQLSTATE 42|column|syntax/.test(error))
  if (bad !== undefined) throw new Error(`the control makes a statement that PostgreSQL cannot read: ${bad}`)
  const checks = report.verdicts.filter(({ violations }) => violations.length > 0)
  if (checks.length === 0) return undefined
  return `run: ${checks.map(({ name, violations }) => `${name} × ${violations.length}`).join(', ')}`
}

let databases = 0

/** Plays `name` in a database of its own. */
export async function playScene(
  server: Pick<PostgresServer, 'url'>,
  library: Library,
  name: SceneName,
): Promise<void> {
  databases += 1
  const database = `scene_${process.pid}_${databases}`
  const inspector = new Inspector(server.url())
  await inspector.query(`create database ${database}`)
  const stage = new SceneStage(library, server.url(database))
  try {
    await library.migrations.migrate(stage.driver, 'holdfast')
    await scenes[name].play(stage)
  } finally {
    await stage.close()
    await inspector.query(`drop database ${database} with (force)`)
  }
}

async function withCopy<T>(edits: Control['edits'], act: (library: Library) => Promise<T>): Promise<T> {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-control-'))
  try {
    const copy = copyPackage(path.join(dir, 'package'), edits)
    return await act(await loadLibrary(copy.dir))
  } finally {
    fs.rmSync(dir, { recursive: true, force: true })
  }
}

/** Class 42: an edit that left no statement proves nothing. */
function isBadSql(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && typeof cause.code === 'string' && cause.code.startsWith('42')) return true
  }
  return false
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.split('\n').slice(0, 1).join(' ').slice(0, 100)
}
