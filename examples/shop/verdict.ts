import type { Facts } from './facts.ts'
import type { Inquiry } from './mail-servers.ts'
import { fingerprint, type Order } from './orders.ts'
import type { Kill, RefusedWrite, RunRecord } from './record.ts'
import type { AcceptedMail } from './smtp.ts'

/** All that is known of a run once it is over. */
export interface Evidence {
  readonly orders: readonly Order[]
  /** Orders that the shop's own table says are confirmed. */
  readonly confirmedIds: ReadonlySet<string>
  /** All that the mail servers accepted, in each server's order. */
  readonly mails: readonly AcceptedMail[]
  /** What the plain server was asked. */
  readonly inquiries: readonly Inquiry[]
  readonly facts: Facts
  readonly record: RunRecord
}

export interface Verdict {
  readonly orders: number
  readonly confirmed: number
  readonly rolledBack: number
  /** Mails that customers get. */
  readonly delivered: number
  /** Mails that came again under the same key, and were not delivered again. */
  readonly deduplicated: number
  /** Mails in doubt that had arrived when the plain server was asked, and were not sent again. */
  readonly foundArrived: number
  /** Mails in doubt that had not arrived, and were sent. */
  readonly foundMissing: number
  /** Mails that the ledger still does not know the end of. */
  readonly inDoubt: number
  /** Confirmed orders whose job was still waiting or running when the time was up. */
  readonly open: number
  /** Confirmed orders whose job is gone, or has ended without a mail. */
  readonly lost: readonly string[]
  /** Orders whose transaction rolled back, but which have a job, a mail, or a changed row. */
  readonly ghosts: readonly string[]
  /** Mails that tell of another order than the one the customer typed. */
  readonly garbled: readonly string[]
  readonly kills: number
  /** Kills between the acceptance of a mail and its record: the job was rescued after. */
  readonly hits: readonly Kill[]
  readonly rescues: number
  readonly pauses: number
  /** Writes for a job that were refused because the job's lease had gone from the worker. */
  readonly refused: number
  /** Orders whose customer got more than one mail, but for those of {@link woken}. */
  readonly twice: readonly string[]
  /** Orders whose customer got one more mail from a worker that was stopped before it sent, and woken too late. */
  readonly woken: readonly string[]
  readonly deaths: readonly string[]
}

const liveStates = new Set(['available', 'scheduled', 'executing', 'retryable'])

export function judge(evidence: Evidence): Verdict {
  const { orders, confirmedIds, mails, inquiries, facts, record } = evidence
  const delivered = mails.filter((mail) => !mail.deduplicated)
  const mailsByOrder = groupByOrder(delivered)
  const ordersById = new Map(orders.map((order) => [order.id, order]))

  // Acknowledged or seen in the table: either way the customer was promised a mail.
  const promised = new Set([...record.confirmed.keys(), ...confirmedIds])
  const jobOf = (orderId: string) => facts.jobs.get(record.confirmed.get(orderId) ?? '')
  const isOpen = (orderId: string) => liveStates.has(jobOf(orderId)?.state ?? '')
  const isKept = (orderId: string) =>
    confirmedIds.has(orderId) &&
    (isOpen(orderId) || (jobOf(orderId)?.state === 'completed' && mailsByOrder.has(orderId)))
  const isGhost = ([orderId, jobId]: [string, string]) =>
    mailsByOrder.has(orderId) || facts.jobs.has(jobId) || confirmedIds.has(orderId)
  const isGarbled = (mail: AcceptedMail) => {
    const order = ordersById.get(mail.orderId)
    return !order || mail.fingerprint !== fingerprint(order)
  }
  const isHit = ({ mail, moment }: Kill) => {
    const jobId = record.confirmed.get(mail.orderId) ?? ''
    return moment === 'accepted' && facts.lost.has(jobId) && (facts.jobs.get(jobId)?.attempts ?? 0) > 1
  }
  // The worker says that it was refused; the database has to say that it took that lease from it.
  const isStale = ({ jobId, fencingToken }: RefusedWrite) =>
    facts.lost.get(jobId)?.tokens.has(fencingToken) === true

  return {
    orders: orders.length,
    confirmed: promised.size,
    rolledBack: record.rolledBack.size,
    delivered: delivered.length,
    deduplicated: mails.length - delivered.length,
    foundArrived: inquiries.filter(({ hasArrived }) => hasArrived).length,
    foundMissing: inquiries.filter(({ hasArrived }) => !hasArrived).length,
    // While a mail's job is open, there is nothing to be known of it yet.
    inDoubt: [...promised].some(isOpen) ? 0 : facts.effects.inDoubt,
    open: [...promised].filter(isOpen).length,
    lost: [...promised].filter((orderId) => !isKept(orderId)),
    ghosts: [...record.rolledBack].filter(isGhost).map(([orderId]) => orderId),
    garbled: delivered.filter(isGarbled).map((mail) => mail.orderId),
    kills: record.kills.length,
    hits: record.kills.filter(isHit),
    rescues: [...facts.lost.values()].reduce((sum, { tokens }) => sum + tokens.size, 0),
    pauses: record.pauses.filter((pause) => pause.overtaken).length,
    refused: record.refused.filter(isStale).length,
    ...repetitions(mailsByOrder, evidence),
    deaths: record.deaths,
  }
}

/** Orders with more than one mail: those that a woken worker accounts for, and the others. */
function repetitions(
  mailsByOrder: ReadonlyMap<string, readonly AcceptedMail[]>,
  { facts, record }: Evidence,
): Pick<Verdict, 'twice' | 'woken'> {
  const isOfWoken = ({ worker, acceptedAt, jobId, attempt }: AcceptedMail) =>
    record.pauses.some((pause) => pause.worker === worker && acceptedAt >= pause.wokenAt) &&
    facts.lost.get(jobId)?.numbers.has(attempt) === true
  const repeated = [...mailsByOrder].filter(([, mails]) => mails.length > 1)
  const isExplained = (mails: readonly AcceptedMail[]) =>
    mails.filter((mail) => !isOfWoken(mail)).length === 1
  return {
    twice: repeated.filter(([, mails]) => !isExplained(mails)).map(([orderId]) => orderId),
    woken: repeated.filter(([, mails]) => isExplained(mails)).map(([orderId]) => orderId),
  }
}

/** Promises of the product that the run saw broken, as sentences; empty if all were kept. */
export function brokenPromises(verdict: Verdict): string[] {
  const { lost, ghosts, garbled, twice, inDoubt, deaths } = verdict
  return [
    ...(lost.length > 0 ? [`${lost.length} confirmed orders were lost: ${some(lost)}.`] : []),
    ...(ghosts.length > 0
      ? [`${ghosts.length} rolled back orders came back as ghosts: ${some(ghosts)}.`]
      : []),
    ...(garbled.length > 0 ? [`${garbled.length} mails did not match their order: ${some(garbled)}.`] : []),
    ...(twice.length > 0 ? [`${twice.length} customers got a mail twice: ${some(twice)}.`] : []),
    ...(inDoubt > 0 ? [`Of ${inDoubt} mails the ledger does not know whether they were sent.`] : []),
    ...deaths.map((death) => `A worker ended by itself: ${death}.`),
  ]
}

/** Why the run proves nothing although no promise was broken; empty if the faults hit. */
export function missedFaults(verdict: Verdict): string[] {
  const { hits, refused, pauses, deduplicated, foundArrived } = verdict
  return [
    ...unfinished(verdict),
    ...(hits.length < 3
      ? [`Only ${hits.length} kills hit between a mail and its record; 3 are needed.`]
      : []),
    ...(deduplicated < 1 ? ['The provider saw no mail again.'] : []),
    ...(foundArrived < 1 ? ['The plain server was asked for no mail that had arrived.'] : []),
    ...(pauses < 1 ? ['No job of a stopped worker was completed elsewhere.'] : []),
    ...(refused < 1 ? ['No stale write of a woken worker was refused.'] : []),
  ]
}

/** Orders that the producer never came to, and runs without a rollback, which cannot show a ghost. */
export function unfinished({ orders, confirmed, rolledBack, open }: Verdict): string[] {
  const left = orders - confirmed - rolledBack
  return [
    ...(left > 0 ? [`The run ended before ${left} orders were confirmed or rolled back.`] : []),
    ...(open > 0 ? [`The run ended before the jobs of ${open} orders were done.`] : []),
    ...(rolledBack < 1 ? ['No order was rolled back.'] : []),
  ]
}

function groupByOrder(mails: readonly AcceptedMail[]): Map<string, AcceptedMail[]> {
  const groups = new Map<string, AcceptedMail[]>()
  for (const mail of mails) groups.set(mail.orderId, [...(groups.get(mail.orderId) ?? []), mail])
  return groups
}

export function some(ids: readonly string[]): string {
  return ids.length > 5 ? `${ids.slice(0, 5).join(', ')} …` : ids.join(', ')
}
