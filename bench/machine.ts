import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { NODE } from './measure/child-process.ts'

export interface Machine {
  readonly name: string
  readonly processor: string
  readonly cores: number
  readonly memoryGigabytes: number
  readonly kernel: string
}

export function machine(): Machine {
  return {
    name: os.hostname(),
    processor: os.cpus()[0]?.model ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGigabytes: Math.round(os.totalmem() / 2 ** 30),
    kernel: os.release(),
  }
}

/** What ran, by name; PostgreSQL's is asked of the server. */
export function versions(): Record<string, string> {
  const peers = ['graphile-worker', 'pg-boss', 'absurd-sdk', 'bullmq', 'pg']
  const installed = peers.map((name) => [name, versionOf(path.join('node_modules', name))] as const)
  return {
    node: execFileSync(NODE, ['--version'], { encoding: 'utf8' }).trim(),
    redis: redisVersion(),
    holdfast: versionOf('..'),
    ...Object.fromEntries(installed),
  }
}

function versionOf(folder: string): string {
  const file = path.join(import.meta.dirname, folder, 'package.json')
  const { version } = JSON.parse(fs.readFileSync(file, 'utf8'))
  return String(version)
}

function redisVersion(): string {
  try {
    return /v=(\S+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))?.[1] ?? 'unknown'
  } catch {
    return 'not installed'
  }
}
