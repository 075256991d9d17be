import type { SequenceInfo } from '../../sequences/sequence-options.ts'
import { usageError } from '../cli-error.ts'
import { int8Option } from '../command.ts'
import { namedValues, oneName, requireCount } from './arguments.ts'
import type { Paint } from './paint.ts'
import type { Call, ShellCommand } from './shell-command.ts'

const SHOWN = 200

const verbs: Readonly<Record<string, (call: Call) => Promise<readonly string[]>>> = {
  async create({ args, session, paint }) {
    const { plain, named } = namedValues(args, ['initial', 'increment', 'max'])
    const info = await session.services.sequences.create(oneName(plain, 'NAME'), {
      initial: int8Option('initial', named.get('initial')),
      increment: int8Option('increment', named.get('increment')),
      max: int8Option('max', named.get('max')),
      tenant: session.tenant,
    })
    return [`${paint.done('created')}, the first value is ${info.initial + info.increment}`]
  },
  async next({ args, session }) {
    const { plain, named } = namedValues(args, ['key'])
    const options = { idempotencyKey: named.get('key'), tenant: session.tenant }
    return [String(await session.services.sequences.next(oneName(plain, 'NAME'), options))]
  },
  async reserve({ args, session }) {
    const { plain, named } = namedValues(args, ['key'])
    requireCount(plain, 2, 2)
    const [name = '', count] = plain
    const options = { idempotencyKey: named.get('key'), tenant: session.tenant }
    const range = await session.services.sequences.reserve(
      name,
      int8Option('COUNT', count) as bigint,
      options,
    )
    return [`${range.first}..${range.last}`]
  },
  async get({ args, session, paint }) {
    const info = await session.services.sequences.get(oneName(args, 'NAME'), { tenant: session.tenant })
    return [info === undefined ? paint.refused('not found') : facts(info)]
  },
  async delete({ args, session, paint }) {
    const isGone = await session.services.sequences.delete(oneName(args, 'NAME'), { tenant: session.tenant })
    return [isGone ? paint.done('deleted') : paint.refused('not found')]
  },
}

export const sequenceCommands: readonly ShellCommand[] = [
  {
    name: 'sequence',
    usage:
      'sequence create NAME [initial=N] [increment=N] [max=N] | next NAME [key=K] | reserve NAME COUNT [key=K] | get NAME | delete NAME',
    summary: 'Create a sequence, draw from it, look at it, delete it; key= makes a draw safe to repeat',
    verbs: Object.keys(verbs),
    names: 'sequences',
    isTimed: true,
    async run(call) {
      const [verb = '', ...args] = call.args
      const act = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
      if (act === undefined)
        throw usageError(`say what to do with the sequence: ${Object.keys(verbs).join(', ')}`)
      return await act({ ...call, args })
    },
  },
  {
    name: 'sequences',
    usage: 'sequences [PREFIX]',
    summary: 'List sequences',
    names: 'sequences',
    isTimed: true,
    run: async (call) => await list(call),
  },
]

async function list({ args, session, paint }: Call): Promise<readonly string[]> {
  requireCount(args, 0, 1)
  const { tenant } = session
  const page = await session.services.sequences.list({ prefix: args[0], limit: SHOWN, tenant })
  if (page.sequences.length === 0) return [paint.refused('no sequences')]
  return [
    ...page.sequences.map((info) => row(info, paint)),
    ...(page.next === undefined ? [] : [paint.faint('there are more; give a longer prefix')]),
  ]
}

function row(info: SequenceInfo, paint: Paint): string {
  return `${paint.strong(paint.value(info.name))}  ${facts(info)}`
}

function facts({ current, increment, max, available }: SequenceInfo): string {
  const bound = max === undefined ? '' : `, max ${max}, ${available} left`
  return `current ${current}, increment ${increment}${bound}`
}
