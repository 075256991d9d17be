import { type Child, startChild } from './child.ts'
import type { Message } from './record.ts'
import { toEnvironment } from './settings.ts'

export interface CrewOptions {
  readonly names: readonly string[]
  /** `worker` is the name that the process gives the mail server. */
  readonly onMessage: (worker: string, message: Message) => void
  /** A worker ended that nobody had killed or asked to end. It is started again. */
  readonly onDeath: (worker: string, how: string) => void
}

export type MemberState = 'starting' | 'up' | 'stopped' | 'killed' | 'leaving' | 'dead'

interface Member {
  /** Name and number of the process, such as `oslo-2`: tells a restarted worker from the one that was killed. */
  readonly worker: string
  readonly child: Child
  state: MemberState
}

/**
 * The worker processes, by name. A member is `starting`, then `up`; from there
 * `stopped` (SIGSTOP) and `up` again, or `killed` (SIGKILL) and replaced by a new
 * process, or, at the end, `leaving` (SIGTERM). A member that ends in any other way
 * is `dead`: that is reported, and it is replaced as well, unless it never came up.
 */
export class Crew implements AsyncDisposable {
  readonly #options: CrewOptions
  readonly #members = new Map<string, Member>()
  #hired = 0

  constructor(options: CrewOptions) {
    this.#options = options
    for (const name of options.names) this.#hire(name)
  }

  get states(): ReadonlyMap<string, MemberState> {
    return new Map([...this.#members.values()].map((member) => [member.worker, member.state]))
  }

  /** The process that now goes by `name`, as the mail server knows it. */
  worker(name: string): string {
    return this.#member(name).worker
  }

  /** Resolves when every member is up, those that were killed replaced. Rejects if one cannot start. */
  async ready(): Promise<void> {
    for (const name of this.#options.names) {
      const { state, child } = this.#member(name)
      if (state === 'killed') await child.ended
      await this.#member(name).child.ready
    }
  }

  kill(name: string): void {
    const member = this.#member(name)
    member.state = 'killed'
    member.child.signal('SIGKILL')
  }

  stop(name: string): void {
    const member = this.#member(name)
    member.state = 'stopped'
    member.child.signal('SIGSTOP')
  }

  wake(name: string): void {
    const member = this.#member(name)
    member.state = 'up'
    member.child.signal('SIGCONT')
  }

  /** Asks all members to finish what they run and end; kills who has not after `graceMs`. */
  async dismiss(graceMs: number): Promise<void> {
    const members = [...this.#members.values()].filter((member) => member.state !== 'dead')
    for (const member of members) {
      member.state = 'leaving'
      member.child.signal('SIGTERM')
    }
    const timer = setTimeout(() => {
      for (const member of members) member.child.signal('SIGKILL')
    }, graceMs)
    const ends = await Promise.all(members.map((member) => member.child.ended))
    clearTimeout(timer)
    for (const [index, how] of ends.entries()) {
      const worker = members[index]?.worker ?? ''
      if (how !== 'exit code 0') this.#options.onDeath(worker, how)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const member of this.#members.values()) {
      member.state = 'leaving'
      member.child.signal('SIGKILL')
    }
    await Promise.all([...this.#members.values()].map((member) => member.child.ended))
  }

  #hire(name: string): void {
    this.#hired += 1
    const worker = `${name}-${this.#hired}`
    const child = startChild({
      file: 'worker.ts',
      env: toEnvironment({ workerName: worker }),
      onMessage: (message) => {
        if (message.type === 'ready') member.state = 'up'
        this.#options.onMessage(worker, message)
      },
    })
    const member: Member = { worker, child, state: 'starting' }
    this.#members.set(name, member)

    void this.#replaceAtEnd(name, member)
  }

  async #replaceAtEnd(name: string, member: Member): Promise<void> {
    const how = await member.child.ended
    if (member.state === 'leaving') return
    // One that cannot even start would do so for ever.
    const replace = member.state !== 'starting'
    if (member.state !== 'killed') {
      member.state = 'dead'
      this.#options.onDeath(member.worker, how)
    }
    if (replace) this.#hire(name)
  }

  #member(name: string): Member {
    const member = this.#members.get(name)
    if (!member) throw new Error(`there is no worker ${name}`)
    return member
  }
}
