import type { Crew } from './crew.ts'
import type { MailServerName, MailServers } from './mail-servers.ts'
import type { Random } from './random.ts'
import type { RunRecord } from './record.ts'
import type { Announcement, Moment } from './smtp.ts'

/** What is done to a worker, at a moment that a mail server sees. */
export interface Fault {
  readonly kind: 'kill' | 'stop past its lease'
  readonly name: string
  readonly server: MailServerName
  readonly moment: Moment
  /** It comes once the servers have accepted so many messages in all. */
  readonly afterMails: number
}

/** The faults of a run. A kill at `accepted` hits a handler between its mail and the record of it. */
const kinds = [
  { kind: 'kill', server: 'provider', moment: 'accepted' },
  { kind: 'kill', server: 'provider', moment: 'accepted' },
  { kind: 'kill', server: 'plain', moment: 'accepted' },
  { kind: 'kill', server: 'plain', moment: 'accepted' },
  { kind: 'stop past its lease', server: 'provider', moment: 'accepted' },
  { kind: 'stop past its lease', server: 'plain', moment: 'announced' },
] as const

/** Of the orders, where the first fault may come, where the last, and how much earlier or later than even steps. */
const FIRST_SHARE = 0.04
const LAST_SHARE = 0.65
const SPREAD_SHARE = 0.03

/** Draws which worker is hit by which fault, in which order, and when, over a run of `orders` orders. */
export function planFaults(
  orders: number,
  { names, random }: { readonly names: readonly string[]; readonly random: Random },
): Fault[] {
  const step = (LAST_SHARE - FIRST_SHARE) / (kinds.length - 1)
  return shuffle(kinds, random).map((kind, index) => {
    const share = FIRST_SHARE + index * step + (random.next() * 2 - 1) * SPREAD_SHARE
    return { ...kind, name: random.pick(names), afterMails: Math.ceil(orders * share) }
  })
}

function shuffle<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

export interface FaultOptions {
  readonly mailServers: MailServers
  readonly crew: Crew
  readonly record: RunRecord
  readonly note: (text: string) => void
  /** Told whether the next fault is due and cannot be made yet: no more mails are wanted than there have to be. */
  readonly onOverdue: (isOverdue: boolean) => void
  /** Tells whether an order's job has been completed. */
  readonly isCompleted: (orderId: string) => Promise<boolean>
  /** Aborts when no more mails will come, so that no fault is waited for in vain. */
  readonly dry: AbortSignal
  /** Aborts when the time is up. */
  readonly signal: AbortSignal
}

/** How long a stopped worker is left so for its job to be done elsewhere: lease and rescue take a few seconds. */
const OVERTAKE_DEADLINE_MS = 15_000
const REFUSAL_DEADLINE_MS = 5_000
const LOOK_EVERY_MS = 50

/** Makes the faults one after the other; returns when the last has had its effect, or when none can be made any more. */
export async function runFaults(faults: readonly Fault[], options: FaultOptions): Promise<void> {
  const { crew, mailServers, onOverdue, signal } = options
  let next: Fault | undefined
  const isOverdue = () => next !== undefined && mailServers.acceptedCount() >= next.afterMails
  const looking = setInterval(() => onOverdue(isOverdue()), LOOK_EVERY_MS)
  try {
    for (next of faults) {
      await crew.ready()
      if (next.kind === 'kill') await killOnce(next, options)
      else await stopOnce(next, options)
      if (signal.aborted) return
    }
  } finally {
    clearInterval(looking)
    onOverdue(false)
  }
}

async function killOnce(fault: Fault, options: FaultOptions): Promise<void> {
  const { crew, record, note } = options
  const worker = crew.worker(fault.name)
  const mail = await atNextMail(fault, options, () => crew.kill(fault.name))
  if (!mail) return
  record.kills.push({ worker, mail, moment: fault.moment })
  note(`kill -9 ${worker}, ${describe(fault)} its mail for order ${mail.orderId}`)
}

/** Stops a worker in the middle of a mail, lets another do its job, and wakes it to go on with what is no longer its own. */
async function stopOnce(fault: Fault, options: FaultOptions): Promise<void> {
  const { crew, record, note, signal } = options
  const { moment } = fault
  const worker = crew.worker(fault.name)
  const mail = await atNextMail(fault, options, () => crew.stop(fault.name))
  if (!mail) return
  note(`SIGSTOP ${worker}, ${describe(fault)} its mail for order ${mail.orderId}`)

  const stoppedAt = performance.now()
  const overtaken = await until(() => options.isCompleted(mail.orderId), OVERTAKE_DEADLINE_MS, signal)
  const stoppedMs = Math.round(performance.now() - stoppedAt)
  const wokenAt = new Date()
  crew.wake(fault.name)
  record.pauses.push({ worker, mail, moment, wokenAt, overtaken })
  note(
    `SIGCONT ${worker} after ${stoppedMs} ms; its job ${overtaken ? 'was completed elsewhere' : 'is still open'}`,
  )

  const isRefused = () => record.refused.some((write) => write.worker === worker)
  await until(isRefused, REFUSAL_DEADLINE_MS, signal)
}

function describe({ moment, server }: Fault): string {
  const where = server === 'provider' ? 'at the provider' : 'at the plain server'
  return moment === 'announced' ? `${where}, before a byte of` : `${where}, before the reply to`
}

/** Calls `strike` in the very moment a mail server sees the worker's next message come to the fault's moment. */
async function atNextMail(
  fault: Fault,
  { mailServers, crew, dry }: FaultOptions,
  strike: () => void,
): Promise<Announcement | undefined> {
  const { events } = mailServers[fault.server]
  return await new Promise((resolve) => {
    const finish = (mail: Announcement | undefined) => {
      events.off(fault.moment, onMail)
      dry.removeEventListener('abort', onAbort)
      resolve(mail)
    }
    const onAbort = () => finish(undefined)
    const onMail = (mail: Announcement) => {
      if (mailServers.acceptedCount() < fault.afterMails || mail.worker !== crew.worker(fault.name)) return
      strike()
      finish(mail)
    }
    events.on(fault.moment, onMail)
    dry.addEventListener('abort', onAbort)
    if (dry.aborted) onAbort()
  })
}

/** Looks again and again until `isTrue`, the deadline, or `signal`; tells whether it came true. */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const endAt = performance.now() + deadlineMs
  while (!signal.aborted) {
    if (await isTrue()) return true
    if (performance.now() > endAt) return false
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
  return false
}
