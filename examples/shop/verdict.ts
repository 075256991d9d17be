import type { Facts } from './facts.ts'
import { fingerprint, type Order } from './orders.ts'
import type { Kill, RefusedWrite, RunRecord } from './record.ts'
import type { AcceptedMail } from './smtp.ts'

/** All that is known of a run once it is over. */
export interface Evidence {
  readonly orders: readonly Order[]
  /** Orders that the shop's own table says are confirmed. */
  readonly confirmedIds: ReadonlySet<string>
  readonly mails: readonly AcceptedMail[]
  readonly facts: Facts
  readonly record: RunRecord
}

export interface Verdict {
  readonly orders: number
  readonly confirmed: number
  readonly rolledBack: number
  readonly mails: number
  /** Confirmed orders whose job was not completed, or whose mail never came. */
  readonly lost: readonly string[]
  /** Orders whose transaction rolled back, but which have a job, a mail, or a changed row. */
  readonly ghosts: readonly string[]
  /** Mails that tell of another order than the one the customer typed. */
  readonly garbled: readonly string[]
  readonly kills: number
  /** Kills that hit a running handler: its mail was accepted before, and its job was rescued after. */
  readonly hits: readonly Kill[]
  readonly rescues: number
  readonly pauses: number
  /** Writes for a job that were refused because the job's lease had gone from the worker. */
  readonly refused: number
  /** Orders whose customer got more than one mail. */
  readonly sentTwice: number
  readonly deaths: readonly string[]
}

export function judge({ orders, confirmedIds, mails, facts, record }: Evidence): Verdict {
  const mailsByOrder = groupByOrder(mails)
  const ordersById = new Map(orders.map((order) => [order.id, order]))

  // Acknowledged or seen in the table: either way the customer was promised a mail.
  const promised = new Set([...record.confirmed.keys(), ...confirmedIds])
  const isKept = (orderId: string) => {
    const job = facts.jobs.get(record.confirmed.get(orderId) ?? '')
    return job?.state === 'completed' && confirmedIds.has(orderId) && mailsByOrder.has(orderId)
  }
  const isGhost = ([orderId, jobId]: [string, string]) =>
    mailsByOrder.has(orderId) || facts.jobs.has(jobId) || confirmedIds.has(orderId)
  const isGarbled = (mail: AcceptedMail) => {
    const order = ordersById.get(mail.orderId)
    return !order || mail.fingerprint !== fingerprint(order)
  }
  const isHit = ({ mail }: Kill) =>
    facts.lostTokens.has(mail.jobId) && (facts.jobs.get(mail.jobId)?.attempts ?? 0) > 1
  // The worker says that it was refused; the database has to say that it took that lease from it.
  const isStale = ({ jobId, fencingToken }: RefusedWrite) =>
    facts.lostTokens.get(jobId)?.has(fencingToken) === true

  return {
    orders: orders.length,
    confirmed: promised.size,
    rolledBack: record.rolledBack.size,
    mails: mails.length,
    lost: [...promised].filter((orderId) => !isKept(orderId)),
    ghosts: [...record.rolledBack].filter(isGhost).map(([orderId]) => orderId),
    garbled: mails.filter(isGarbled).map((mail) => mail.orderId),
    kills: record.kills.length,
    hits: record.kills.filter(isHit),
    rescues: [...facts.lostTokens.values()].reduce((sum, tokens) => sum + tokens.size, 0),
    pauses: record.pauses.filter((pause) => pause.overtaken).length,
    refused: record.refused.filter(isStale).length,
    sentTwice: [...mailsByOrder.values()].filter((sent) => sent.length > 1).length,
    deaths: record.deaths,
  }
}

/** Promises of the product that the run saw broken, as sentences; empty if all were kept. */
export function brokenPromises(verdict: Verdict): string[] {
  const { lost, ghosts, garbled, deaths } = verdict
  return [
    ...(lost.length > 0 ? [`${lost.length} confirmed orders were lost: ${some(lost)}.`] : []),
    ...(ghosts.length > 0
      ? [`${ghosts.length} rolled back orders came back as ghosts: ${some(ghosts)}.`]
      : []),
    ...(garbled.length > 0 ? [`${garbled.length} mails did not match their order: ${some(garbled)}.`] : []),
    ...deaths.map((death) => `A worker ended by itself: ${death}.`),
  ]
}

/** Why the run proves nothing although no promise was broken; empty if the faults hit. */
export function missedFaults(verdict: Verdict): string[] {
  const { hits, refused, pauses } = verdict
  return [
    ...unfinished(verdict),
    ...(hits.length < 3 ? [`Only ${hits.length} kills hit a running handler; 3 are needed.`] : []),
    ...(pauses < 1 ? ['No job of the stopped worker was completed elsewhere.'] : []),
    ...(refused < 1 ? ['No stale write of the woken worker was refused.'] : []),
  ]
}

/** Orders that the producer never came to, and runs without a rollback, which cannot show a ghost. */
export function unfinished({ orders, confirmed, rolledBack }: Verdict): string[] {
  const left = orders - confirmed - rolledBack
  return [
    ...(left > 0 ? [`The run ended before ${left} orders were confirmed or rolled back.`] : []),
    ...(rolledBack < 1 ? ['No order was rolled back.'] : []),
  ]
}

function groupByOrder(mails: readonly AcceptedMail[]): Map<string, AcceptedMail[]> {
  const groups = new Map<string, AcceptedMail[]>()
  for (const mail of mails) groups.set(mail.orderId, [...(groups.get(mail.orderId) ?? []), mail])
  return groups
}

function some(ids: readonly string[]): string {
  return ids.length > 5 ? `${ids.slice(0, 5).join(', ')} …` : ids.join(', ')
}
