import { channelOf } from '../base/channel.ts'
import { quoteIdentifier, quoteLiteral } from './identifier.ts'

/** A table, function or other object of ours, always written with its schema. */
export interface ObjectName {
  readonly kind: 'object'
  readonly object: string
}

/** The oid of an object of ours, as functions of sequences take it. */
export interface ObjectOid {
  readonly kind: 'oid'
  readonly object: string
}

/** The name of the channel that wakes workers, as `pg_notify` takes it. */
export interface ChannelName {
  readonly kind: 'channel'
}

/** A declared parameter, rendered as a placeholder with its cast. */
export interface Placeholder {
  readonly kind: 'placeholder'
  readonly param: string
}

/** SQL text in pieces. Only the tag makes one, and the tag takes no plain values. */
export interface SqlFragment {
  readonly kind: 'fragment'
  readonly strings: readonly string[]
  readonly parts: readonly SqlPart[]
}

export type SqlPart = ObjectName | ObjectOid | ChannelName | Placeholder | SqlFragment

/**
 * Builds SQL from literal text, objects of ours, declared parameters and other fragments.
 * A string, number or any other value does not compile: values travel as parameters.
 */
export function sql(strings: TemplateStringsArray, ...parts: readonly SqlPart[]): SqlFragment {
  return { kind: 'fragment', strings, parts }
}

/** `'"schema"."object"'::regclass`, for `nextval`. */
export function oidOf({ object }: ObjectName): ObjectOid {
  return { kind: 'oid', object }
}

export const channelName: ChannelName = { kind: 'channel' }

/** Every table, type and function of ours that a statement may name. */
const objectNames = [
  'acquire_lock',
  'acquire_lock_ephemeral',
  'announce',
  'announce_cancel',
  'assert_lock',
  'attempt',
  'attempt_end',
  'audit',
  'checkpoint',
  'create_sequence',
  'draw_values',
  'effect',
  'effect_question',
  'effect_state',
  'ensure_partitions',
  'enqueue_alike_jobs',
  'enqueue_jobs',
  'enqueue_keyed_jobs',
  'enter_key_log',
  'extend_lock',
  'extend_lock_ephemeral',
  'force_release_lock',
  'force_release_lock_ephemeral',
  'id_range',
  'idempotency_key',
  'job',
  'job_definition',
  'job_seq',
  'job_state',
  'jobs',
  'ephemeral_key_change',
  'ephemeral_key_value',
  'key_change',
  'key_changes',
  'key_delete',
  'key_delete_many',
  'key_extend',
  'key_get_as_of',
  'key_get_in_snapshot',
  'key_get_revision',
  'key_hold',
  'key_increment',
  'key_is_watched',
  'key_page',
  'key_set',
  'key_set_many',
  'key_sweep',
  'key_trim',
  'key_value',
  'key_watch_keep',
  'key_watch_start',
  'key_watcher',
  'lease',
  'lock',
  'lock_ephemeral',
  'migration',
  'outcome',
  'parked',
  'prune_locks',
  'prune_locks_ephemeral',
  'queue',
  'release_lock',
  'release_lock_ephemeral',
  'rotate_ids',
  'retire_range',
  'prune_archive',
  'prune_effects',
  'prune_sequence_requests',
  'ready',
  'scheduled',
  'script_run',
  'sequence',
  'sequence_request',
  'tell_key_changed',
  'tell_lock_free',
  'unique_key',
  'waiter',
  'worker',
] as const

/** Objects of ours by name: `t.job` renders as `"holdfast"."job"`. */
export type Objects = Readonly<Record<(typeof objectNames)[number], ObjectName>>

export const objects: Objects = Object.fromEntries(
  objectNames.map((object) => [object, { kind: 'object', object }]),
) as Record<(typeof objectNames)[number], ObjectName>

/** Renders `fragment` for `schema`; `placeholder` gives the text of each parameter. */
export function render(
  fragment: SqlFragment,
  schema: string,
  placeholder: (param: string) => string,
): string {
  return fragment.strings.reduce((text, literal, index) => {
    const part = fragment.parts[index - 1]
    return text + (part === undefined ? '' : renderPart(part, schema, placeholder)) + literal
  })
}

function renderPart(part: SqlPart, schema: string, placeholder: (param: string) => string): string {
  switch (part.kind) {
    case 'object':
      return qualified(schema, part.object)
    case 'oid':
      return `${quoteLiteral(qualified(schema, part.object))}::pg_catalog.regclass`
    case 'channel':
      return quoteLiteral(channelOf(schema))
    case 'placeholder':
      return placeholder(part.param)
    case 'fragment':
      return render(part, schema, placeholder)
  }
}

function qualified(schema: string, object: string): string {
  return `${quoteIdentifier(schema)}.${quoteIdentifier(object)}`
}
