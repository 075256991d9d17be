import { type Adapter, checkOf, type RunningWorker } from '../adapters/adapter.ts'
import { sharedNow } from './clock.ts'
import { secondsOf } from './producer.ts'
import { type Runs, SAMPLED, type Timing } from './protocol.ts'

/** Told to the parent this often; a producer that saturates waits for it. */
const PROGRESS_MS = 5

/** The working half of a run: counts every run of every job by its number. */
export class WorkerSide {
  readonly #adapter: Adapter
  readonly #times: Uint8Array
  readonly #startedAt: Float64Array
  readonly #timing: Timing
  readonly #warmUp: number
  readonly #onProgress: (count: number) => void
  #running: RunningWorker | undefined
  #count = 0
  #wrong = 0
  #firstAt = 0
  #lastAt = 0
  #firstCpu: NodeJS.CpuUsage | undefined
  #progress: NodeJS.Timeout | undefined

  /** Jobs from `capacity` on must not run. The first `warmUp` runs are no part of the rate, nor of the CPU. */
  constructor(
    adapter: Adapter,
    { capacity, timing, warmUp }: { capacity: number; timing: Timing; warmUp: number },
    onProgress: (count: number) => void,
  ) {
    this.#adapter = adapter
    this.#warmUp = warmUp
    this.#onProgress = onProgress
    this.#times = new Uint8Array(capacity)
    this.#timing = timing
    const timed = timing === 'all' ? capacity : timing === 'sampled' ? Math.ceil(capacity / SAMPLED) : 0
    this.#startedAt = new Float64Array(timed)
  }

  async start(concurrency: number): Promise<void> {
    this.#running = await this.#adapter.startWorker({ concurrency, onRun: (input) => this.#onRun(input) })
  }

  async stop(): Promise<void> {
    clearTimeout(this.#progress)
    await this.#running?.stop()
    this.#running = undefined
  }

  runs(): Runs {
    return {
      count: this.#count,
      counted: Math.max(0, this.#count - this.#warmUp),
      wrong: this.#wrong,
      times: this.#times,
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
      startedAt: this.#startedAt,
      cpuSeconds: this.#firstCpu ? secondsOf(process.cpuUsage(this.#firstCpu)) : 0,
    }
  }

  #onRun(input: unknown): void {
    const now = sharedNow()
    if (this.#count === this.#warmUp) {
      this.#firstAt = now
      this.#firstCpu = process.cpuUsage()
    }
    this.#count += 1
    this.#lastAt = now
    // Only after a run: a timer that never rests would be counted as the idle worker's CPU.
    this.#progress ??= setTimeout(() => this.#tell(), PROGRESS_MS)
    const { n, check } = numbersOf(input)
    if (check !== checkOf(n) || n >= this.#times.length) {
      this.#wrong += 1
      return
    }
    this.#times[n] = (this.#times[n] ?? 0) + 1
    if (this.#timing === 'all') this.#startedAt[n] = now
    else if (this.#timing === 'sampled' && n % SAMPLED === 0) this.#startedAt[n / SAMPLED] = now
  }

  #tell(): void {
    this.#progress = undefined
    this.#onProgress(this.#count)
  }
}

function numbersOf(input: unknown): { n: number; check: number } {
  if (typeof input === 'object' && input !== null && 'n' in input && 'check' in input) {
    const { n, check } = input
    if (typeof n === 'number' && typeof check === 'number') return { n, check }
  }
  return { n: 0, check: -1 }
}
