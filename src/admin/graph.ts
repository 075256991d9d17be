import { type EffectName, enqueuedName, isOutside } from '../effects/effect-name.ts'
import type { Manifest } from './manifest.ts'

/** What an effect points at, as a node of the graph; `undefined` for what is only read. */
interface Target {
  readonly id: string
  /** The node's own line; none for a job, which has one already. */
  readonly node: string | undefined
  readonly label: string
}

/**
 * The manifest as a Mermaid flowchart, line by line: producers and jobs, with arrows to the jobs that they enqueue, the data
 * that they write, and what they do outside. In a fixed order, and each id is made from its own name alone: a change
 * of the application changes only lines that are about it.
 */
export function graphOf(manifest: Manifest): readonly string[] {
  const { producers, jobs } = manifest
  const owners = [
    ...producers.map(({ name, effects }) => ({ id: idOf('producer', name), effects })),
    ...jobs.map(({ name, effects }) => ({ id: idOf('job', name), effects })),
  ]
  const targets = manifest.effects.map(({ effect }) => targetOf(effect)?.node)
  return [
    'flowchart LR',
    ...producers.map(({ name }) => `${idOf('producer', name)}([${quoted(name)}])`),
    ...jobs.map(({ name }) => `${idOf('job', name)}[${quoted(name)}]`),
    ...targets.filter((node) => node !== undefined),
    ...owners.flatMap(({ id, effects }) => effects.flatMap((effect) => arrow(id, targetOf(effect)))),
  ].map((line, index) => (index === 0 ? line : `  ${line}`))
}

function arrow(from: string, to: Target | undefined): readonly string[] {
  return to === undefined ? [] : [`${from} -->|${to.label}| ${to.id}`]
}

function targetOf(effect: EffectName): Target | undefined {
  const job = enqueuedName(effect)
  if (job !== undefined) return { id: idOf('job', job), node: undefined, label: 'enqueues' }
  const colon = effect.indexOf(':')
  const [kind, object] = [effect.slice(0, colon), effect.slice(colon + 1)]
  if (isOutside(effect)) {
    const id = idOf(kind, object)
    return { id, node: `${id}{{${quoted(object)}}}`, label: `${kind}s` }
  }
  if (kind !== 'write') return undefined
  const id = idOf('data', object)
  return { id, node: `${id}[(${quoted(object)})]`, label: 'writes' }
}

/** Letters and digits stay; anything else is its code, so that two names never share an id. */
function idOf(kind: string, name: string): string {
  return `${kind}_${name.replace(/[^A-Za-z0-9]/gu, (char) => `_${char.codePointAt(0)?.toString(16)}_`)}`
}

/** Mermaid reads quotes, markup and its own entities in labels. */
function quoted(text: string): string {
  return `"${text.replace(/["#<>&`\\]/g, (char) => `#${char.charCodeAt(0)};`)}"`
}
