import type { Crew } from './crew.ts'
import type { RunRecord } from './record.ts'
import type { AcceptedMail, MailServer } from './smtp.ts'

/** What is done to a worker once the mail server has accepted `afterMails` messages in all. */
export interface Fault {
  readonly kind: 'kill' | 'stop past its lease'
  readonly name: string
  readonly afterMails: number
  /** `accepted`: the worker does not know yet that its mail was taken. `replied`: it is just being told. */
  readonly moment: 'accepted' | 'replied'
}

/**
 * Spreads kills of both workers and one stop over a run of `orders` orders.
 *
 * A kill at `accepted` always hits a running handler, so three of them suffice. At
 * `replied` the worker may just have been quick enough to record its job.
 */
export function planFaults(orders: number, [first, second]: readonly [string, string]): Fault[] {
  const at = (share: number) => Math.ceil(orders * share)
  return [
    { kind: 'kill', name: first, afterMails: at(0.05), moment: 'accepted' },
    { kind: 'kill', name: second, afterMails: at(0.18), moment: 'replied' },
    { kind: 'stop past its lease', name: first, afterMails: at(0.32), moment: 'accepted' },
    { kind: 'kill', name: second, afterMails: at(0.5), moment: 'accepted' },
    { kind: 'kill', name: first, afterMails: at(0.65), moment: 'accepted' },
    { kind: 'kill', name: second, afterMails: at(0.8), moment: 'replied' },
  ]
}

export interface FaultOptions {
  readonly mailServer: MailServer
  readonly crew: Crew
  readonly record: RunRecord
  readonly note: (text: string) => void
  /** Tells whether a job has been completed. */
  readonly isCompleted: (jobId: string) => Promise<boolean>
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
  for (const fault of faults) {
    await options.crew.ready()
    if (fault.kind === 'kill') await killOnce(fault, options)
    else await stopOnce(fault, options)
  }
}

async function killOnce(fault: Fault, options: FaultOptions): Promise<void> {
  const { crew, record, note } = options
  const worker = crew.worker(fault.name)
  const mail = await atNextMail(fault, options, () => crew.kill(fault.name))
  if (!mail) return
  record.kills.push({ worker, mail })
  const when = fault.moment === 'accepted' ? 'before the reply to' : 'right after the reply to'
  note(`kill -9 ${worker}, ${when} its mail for order ${mail.orderId}`)
}

/** Stops a worker that waits for a reply, lets another do its job, and wakes it to report what is no longer its own. */
async function stopOnce(fault: Fault, options: FaultOptions): Promise<void> {
  const { crew, record, note, signal } = options
  const worker = crew.worker(fault.name)
  const mail = await atNextMail(fault, options, () => crew.stop(fault.name))
  if (!mail) return
  note(`SIGSTOP ${worker}, before the reply to its mail for order ${mail.orderId}`)

  const stoppedAt = performance.now()
  const overtaken = await until(() => options.isCompleted(mail.jobId), OVERTAKE_DEADLINE_MS, signal)
  const stoppedMs = Math.round(performance.now() - stoppedAt)
  crew.wake(fault.name)
  record.pauses.push({ worker, mail, overtaken })
  note(
    `SIGCONT ${worker} after ${stoppedMs} ms; its job ${overtaken ? 'was completed elsewhere' : 'is still open'}`,
  )

  const isRefused = () => record.refused.some((write) => write.worker === worker)
  await until(isRefused, REFUSAL_DEADLINE_MS, signal)
}

/** Calls `strike` in the very moment the mail server accepts (or has answered) the worker's next message. */
async function atNextMail(
  fault: Fault,
  { mailServer, crew, dry }: FaultOptions,
  strike: () => void,
): Promise<AcceptedMail | undefined> {
  return await new Promise((resolve) => {
    const finish = (mail: AcceptedMail | undefined) => {
      mailServer.events.off(fault.moment, onMail)
      dry.removeEventListener('abort', onAbort)
      resolve(mail)
    }
    const onAbort = () => finish(undefined)
    const onMail = (mail: AcceptedMail) => {
      if (mailServer.accepted.length < fault.afterMails || mail.worker !== crew.worker(fault.name)) return
      strike()
      finish(mail)
    }
    mailServer.events.on(fault.moment, onMail)
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
