import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../shop/random.ts'
import { type Actor, startActor } from '../stage/actor.ts'

export interface CrewOptions {
  readonly workers: number
  readonly env: Readonly<Record<string, string>>
  readonly random: Random
  readonly say: (text: string) => void
}

export interface StopOptions {
  readonly suits: (jobId: string) => boolean
  readonly isOver: (jobId: string) => Promise<boolean>
}

interface Member {
  readonly actor: Actor
  state: 'starting' | 'up' | 'stopped' | 'killed' | 'done'
}

/** The pool of workers. One that is killed is replaced at once. */
export class Crew {
  readonly #options: CrewOptions
  readonly #members: Member[] = []
  #hired = 0
  /** A worker that ended as nobody had asked it to. */
  readonly failures: string[] = []

  constructor(options: CrewOptions) {
    this.#options = options
    for (let n = 0; n < options.workers; n += 1) this.#hire()
  }

  /** What workers told of a kind. */
  count(kind: string): number {
    return this.#members.flatMap(({ actor }) => actor.told).filter((told) => told.kind === kind).length
  }

  /** Kills one of those that work, wherever it is; false if none does. */
  kill(): boolean {
    const victim = this.#pick()
    if (victim === undefined) return false
    this.#options.say(`  ${victim.actor.name} is killed`)
    victim.state = 'killed'
    victim.actor.signal('SIGKILL')
    this.#hire()
    return true
  }

  /** Stops one in the middle of its work on an invoice until that is over; it wakes, and goes on as if nothing had been. */
  async stop(options: StopOptions): Promise<void> {
    while (!this.isDone && !(await this.#stopOne(options)));
  }

  get isDone(): boolean {
    return this.#members.every(({ state }) => state === 'killed' || state === 'done')
  }

  /** Resolves when all have ended because nothing is left to do. */
  async done(): Promise<void> {
    while (!this.isDone) await sleep(20)
  }

  #hire(): void {
    this.#hired += 1
    const name = `worker-${this.#hired}`
    const actor = startActor({
      file: new URL('worker.ts', import.meta.url),
      name,
      env: this.#options.env,
      onTold: ({ kind }) => {
        if (kind === 'ready') member.state = 'up'
      },
    })
    const member: Member = { actor, state: 'starting' }
    this.#members.push(member)
    void actor.ended.then((how) => {
      if (member.state === 'killed') return
      member.state = 'done'
      if (how !== 'exit code 0') this.failures.push(`${name}: ${how}`)
    })
  }

  #pick(): Member | undefined {
    const up = this.#members.filter(({ state }) => state === 'up')
    return up.length === 0 ? undefined : this.#options.random.pick(up)
  }

  /** False if that one had done its work by the time it stood still. */
  async #stopOne({ suits, isOver }: StopOptions): Promise<boolean> {
    const [member, jobId] = await this.#atWork(suits)
    if (member === undefined || jobId === undefined) return false
    const { actor } = member
    member.state = 'stopped'
    actor.signal('SIGSTOP')
    // What it sent before it stood still may be on its way.
    await sleep(20)
    const isTooLate = await isOver(jobId)
    if (!isTooLate) {
      this.#options.say(`  ${actor.name} is stopped at its work on ${jobId}`)
      while (!(await isOver(jobId))) await sleep(20)
      this.#options.say(`  ${actor.name} is woken: others have done it`)
    }
    const isBack = Promise.any([actor.next('refused'), actor.next('works')])
    actor.signal('SIGCONT')
    // Not to be killed before it has done what it was stopped for. It may also find nothing left to do.
    await isBack.catch(() => undefined)
    if (member.state === 'stopped') member.state = 'up'
    return !isTooLate
  }

  /** One that has just begun with an invoice that suits; none if all have ended. */
  async #atWork(suits: (jobId: string) => boolean): Promise<readonly [Member?, string?]> {
    while (!this.isDone) {
      const member = this.#pick()
      const told = await member?.actor.next('works').catch(() => undefined)
      const jobId = String(told?.jobId)
      if (member?.state === 'up' && told !== undefined && suits(jobId)) return [member, jobId]
      await sleep(10)
    }
    return []
  }
}
