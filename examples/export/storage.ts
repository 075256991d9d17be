import { copyFile, type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { checkKey, checkText, fromFileName, toFileName } from './names.ts'

/**
 * Files of tenants. Readers see what is published, each file whole or not at all; what is under construction has a place
 * and a name of its own:
 *
 *     <root>/<deployment>/<tenant>/published/exports%2F2026-11.csv
 *     <root>/<deployment>/<tenant>/partial/exports%2F2026-11.csv.17-204.partial     by job 17 under token 204
 *
 * Deployment, tenant and key are one path segment each, whatever they hold: no two of them share a place.
 */
export class Storage {
  readonly #folder: string

  constructor({ root, deployment }: { readonly root: string; readonly deployment: string }) {
    this.#folder = path.join(root, toFileName(checkText('the deployment', deployment)))
  }

  /** The space of one tenant; nothing of another can be reached through it. */
  of(tenant: string): TenantSpace {
    return new TenantSpace(path.join(this.#folder, toFileName(checkText('a tenant', tenant))))
  }
}

/** Who writes a partial file. With the fencing token in its name, an attempt that lost its lease writes its own. */
export interface PartialId {
  readonly key: string
  readonly jobId: string
  readonly fencingToken: string
}

/** A partial file as the sweep finds it. */
export interface FoundPartial {
  readonly id: PartialId
  readonly modifiedAt: Date
}

export class TenantSpace {
  readonly #published: string
  readonly #partial: string

  constructor(folder: string) {
    this.#published = path.join(folder, 'published')
    this.#partial = path.join(folder, 'partial')
  }

  /** Keys of what is published, in order. */
  async list(): Promise<readonly string[]> {
    return (await filesIn(this.#published)).map(fromFileName).sort()
  }

  /** What is published under a key. */
  async read(key: string): Promise<string> {
    return await readFile(this.#publishedPath(key), 'utf8')
  }

  /** Begins a partial file, empty. */
  async createPartial(id: PartialId): Promise<PartialFile> {
    const target = this.#partialPath(id)
    await mkdir(this.#partial, { recursive: true })
    return new PartialFile(await open(target, 'w'), 0)
  }

  /**
   * Begins a partial file with the first `bytes` bytes of an earlier one, which stays as it is: whoever wrote it may only
   * be stopped, and go on.
   *
   * @returns `undefined` if the earlier one is gone.
   */
  async continuePartial(
    id: PartialId,
    from: { readonly id: PartialId; readonly bytes: number },
  ): Promise<PartialFile | undefined> {
    const target = this.#partialPath(id)
    if (!(await done(copyFile(this.#partialPath(from.id), target)))) return undefined
    const file = await open(target, 'r+')
    await file.truncate(from.bytes)
    return new PartialFile(file, from.bytes)
  }

  /** Makes a finished partial file what readers of its key see, at once and as a whole. Repeating it does no harm. */
  async publish(id: PartialId): Promise<void> {
    await mkdir(this.#published, { recursive: true })
    const target = this.#publishedPath(id.key)
    // Gone, with a file in its place: an earlier call has renamed it, and its answer was lost.
    if (!(await done(rename(this.#partialPath(id), target)))) await stat(target)
    const folder = await open(this.#published, 'r')
    await folder.sync()
    await folder.close()
  }

  async partials(): Promise<readonly FoundPartial[]> {
    const found: FoundPartial[] = []
    for (const name of await filesIn(this.#partial)) {
      const [, key = '', jobId = '', fencingToken = ''] = /^(.+)\.(\d+)-(\d+)\.partial$/.exec(name) ?? []
      if (key === '') continue
      const { mtime } = await stat(path.join(this.#partial, name))
      found.push({ id: { key: fromFileName(key), jobId, fencingToken }, modifiedAt: mtime })
    }
    return found
  }

  async removePartial(id: PartialId): Promise<void> {
    await rm(this.#partialPath(id), { force: true })
  }

  #publishedPath(key: string): string {
    return path.join(this.#published, toFileName(checkKey(key)))
  }

  #partialPath({ key, jobId, fencingToken }: PartialId): string {
    return path.join(this.#partial, `${toFileName(checkKey(key))}.${jobId}-${fencingToken}.partial`)
  }
}

/** A partial file that is open for appending. */
export class PartialFile {
  readonly #file: FileHandle
  #bytes: number

  constructor(file: FileHandle, bytes: number) {
    this.#file = file
    this.#bytes = bytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** On disk when it resolves: a checkpoint that speaks of it may be taken. */
  async append(text: string): Promise<void> {
    const buffer = Buffer.from(text)
    await this.#file.write(buffer, 0, buffer.length, this.#bytes)
    await this.#file.datasync()
    this.#bytes += buffer.length
  }

  async close(): Promise<void> {
    await this.#file.close()
  }
}

async function filesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** False if a file it needs is not there. */
async function done(act: Promise<unknown>): Promise<boolean> {
  try {
    await act
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
