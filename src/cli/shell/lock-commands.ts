import { span } from '../../admin/time-text.ts'
import type { Durability } from '../../base/durability.ts'
import { limits } from '../../base/limits.ts'
import { CliError } from '../cli-error.ts'
import { numberOption } from '../command.ts'
import { oneName, requireCount } from './arguments.ts'
import type { ShellLockInfo } from './services.ts'
import type { Call, ShellCommand } from './shell-command.ts'

/** Locks that `locks` shows at most: pages are read until so many have the prefix. */
const SHOWN = 200
const PAGE = limits.pageRows.max

/** The lock commands of one durability; those for ephemeral ones begin with `e`. */
function lockCommands(durability: Durability): readonly ShellCommand[] {
  const e = durability === 'ephemeral' ? 'e' : ''
  const names = durability === 'ephemeral' ? 'elocks' : 'locks'
  const kind = durability === 'ephemeral' ? 'an ephemeral lock' : 'a lock'
  const command = (
    name: string,
    parameters: string,
    summary: string,
    run: ShellCommand['run'],
  ): ShellCommand => ({
    name: `${e}${name}`,
    usage: `${e}${name} ${parameters}`.trim(),
    summary,
    names,
    isTimed: true,
    run,
  })
  return [
    command(
      'lock',
      'RESOURCE [MS]',
      `Take ${kind}, for 30,000 ms or MS; it is released when the shell ends`,
      async (call) => await take(call, durability),
    ),
    command(
      'extend-lock',
      'RESOURCE [MS]',
      `Let ${kind} of this shell last 30,000 ms or MS from now`,
      async (call) => await extend(call, durability),
    ),
    command(
      'unlock',
      'RESOURCE',
      `Release ${kind} of this shell`,
      async (call) => await release(call, durability),
    ),
    command(
      'get-lock',
      'RESOURCE',
      `Show who has ${kind}, and for how long`,
      async (call) => await show(call, durability),
    ),
    command(
      'locks',
      '[PREFIX]',
      `List ${e === '' ? '' : 'ephemeral '}locks that are held`,
      async (call) => await list(call, durability),
    ),
  ]
}

export const allLockCommands = [...lockCommands('persistent'), ...lockCommands('ephemeral')]

async function take({ args, session, paint }: Call, durability: Durability): Promise<readonly string[]> {
  const { resource, leaseMs } = resourceAndMs(args)
  const { tenant, owner } = session
  const lock = await session.services.locks.acquire(resource, { leaseMs, owner, durability, tenant })
  if (!lock.held || lock.fencingToken === undefined) return [paint.refused('busy')]
  session.keep(resource, durability, lock)
  return [`${paint.token(lock.fencingToken)} ${paint.done('locked')}`]
}

async function extend({ args, session, paint }: Call, durability: Durability): Promise<readonly string[]> {
  const { resource, leaseMs } = resourceAndMs(args)
  const lock = requireLock(session.lock(resource, durability), resource)
  const isExtended = await lock.extend(leaseMs ?? limits.lockLeaseMs.default)
  if (!isExtended) session.forget(resource, durability)
  const answer = isExtended ? paint.done('extended') : paint.refused('lost')
  return [lock.fencingToken === undefined ? answer : `${paint.token(lock.fencingToken)} ${answer}`]
}

async function release({ args, session, paint }: Call, durability: Durability): Promise<readonly string[]> {
  const resource = oneName(args, 'RESOURCE')
  const lock = requireLock(session.lock(resource, durability), resource)
  const wasOurs = await lock.release()
  session.forget(resource, durability)
  const answer = wasOurs ? paint.done('unlocked') : paint.refused('lost')
  return [lock.fencingToken === undefined ? answer : `${paint.token(lock.fencingToken)} ${answer}`]
}

async function show({ args, session, paint }: Call, durability: Durability): Promise<readonly string[]> {
  const resource = oneName(args, 'RESOURCE')
  const { tenant } = session
  const info = await session.services.locks.info(resource, { durability, tenant })
  if (info === undefined) return [paint.refused('free')]
  const whose = info.owner === session.owner ? 'this shell' : paint.value(info.owner)
  return [`${paint.token(info.fencingToken)} held by ${whose} for ${left(info)} more`]
}

async function list(call: Call, durability: Durability): Promise<readonly string[]> {
  const { args, session, paint } = call
  requireCount(args, 0, 1)
  const [prefix = ''] = args
  const { found, isAll } = await heldLocks(call, durability, prefix)
  const rows = found.map(
    (info) =>
      `${paint.token(info.fencingToken)} ${paint.value(info.resource)}  ${paint.faint(
        `${info.owner === session.owner ? 'this shell' : paint.value(info.owner)}, ${left(info)} more`,
      )}`,
  )
  if (rows.length === 0) return [paint.refused('no locks')]
  return isAll ? rows : [...rows, paint.faint('there are more; give a longer prefix')]
}

async function heldLocks({ session, signal }: Call, durability: Durability, prefix: string) {
  const { tenant } = session
  const found: ShellLockInfo[] = []
  let after: string | undefined
  do {
    const page = await session.services.locks.list({ durability, tenant, limit: PAGE, after })
    found.push(...page.locks.filter(({ resource }) => resource.startsWith(prefix)))
    after = page.next ?? undefined
  } while (after !== undefined && found.length <= SHOWN && !signal.aborted)
  return { found: found.slice(0, SHOWN), isAll: found.length <= SHOWN && after === undefined }
}

function resourceAndMs(args: readonly string[]) {
  requireCount(args, 1, 2)
  const [resource = '', ms] = args
  return { resource, leaseMs: ms === undefined ? undefined : numberOption('MS', ms, limits.lockLeaseMs) }
}

function requireLock<T>(lock: T | undefined, resource: string): T {
  if (lock === undefined)
    throw new CliError(`this shell does not have the lock "${resource}"; "get-lock" shows who has it`)
  return lock
}

/** By this machine's clock, which may differ from the database's: for people. */
function left({ expiresAt }: ShellLockInfo): string {
  return span(expiresAt.getTime() - Date.now())
}
