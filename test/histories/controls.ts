import type { Edit } from '../chaos/package-copy.ts'
import type { FunctionEdit } from './broken-function.ts'
import type { WorkloadName } from './workload.ts'

/** A condition taken out of the product, and the checker that has to notice. */
export interface Control {
  readonly takesOut: string
  readonly noticedBy: WorkloadName
  /** Of functions in the database. */
  readonly functions?: readonly FunctionEdit[]
  /** Of the library, which runs in processes of its own then, under faults. */
  readonly edits?: readonly Edit[]
}

/** What a script locks of the keys that it only reads. */
const SHARED =
  'from "holdfast".key_value k where k.tenant = key_lock.tenant and k.key = wanted.key for share;'

export const controls = {
  'set-without-recheck': {
    takesOut: 'set: that the row is still as the conditions were looked at',
    noticedBy: 'register',
    functions: [
      {
        name: 'key_set',
        find: 'where k.tenant = key_set.tenant and k.key = key_set.key and k.revision = r and k.xid = x;',
        replace: 'where k.tenant = key_set.tenant and k.key = key_set.key;',
        times: 2,
      },
    ],
  },
  'set-without-condition': {
    takesOut: 'set: the revision it was to have',
    noticedBy: 'register',
    functions: [
      { name: 'key_set', find: 'if if_revision <> r or if_absent', replace: 'if if_absent', times: 2 },
    ],
  },
  'set-statement-without-condition': {
    takesOut: 'the statement of a set: the revision it was to have',
    noticedBy: 'register',
    edits: [
      {
        file: 'src/keys/sql/set-key.ts',
        find: ' and (k.revision = ${p.ifRevision}) is not false',
        replace: '',
      },
    ],
  },
  'delete-without-revision': {
    takesOut: 'delete: that it is a revision',
    noticedBy: 'register',
    functions: [
      { name: 'key_delete', find: 'revision = k.revision + 1', replace: 'revision = k.revision', times: 2 },
    ],
  },
  'set-sent-again': {
    takesOut: 'that a set without an answer is not sent again',
    noticedBy: 'register',
    edits: [
      {
        file: 'src/keys/sql/set-key.ts',
        find: `name: 'set_key',`,
        replace: `name: 'set_key', repeatable: true,`,
      },
      {
        file: 'src/keys/sql/set-key.ts',
        find: `name: 'set_key_if',`,
        replace: `name: 'set_key_if', repeatable: true,`,
      },
    ],
  },
  'read-of-what-was-deleted': {
    takesOut: 'get: that the key is there',
    noticedBy: 'register',
    edits: [{ file: 'src/keys/sql/get-key.ts', find: 'and not e.deleted and', replace: 'and' }],
  },
  'script-without-locks': {
    takesOut: 'scripts: the locks on what they name',
    noticedBy: 'append',
    functions: [
      { name: 'key_lock', find: '  wanted record;\nbegin', replace: '  wanted record;\nbegin\n  return;' },
    ],
  },
  'script-without-read-locks': {
    takesOut: 'scripts: the locks on what they only read',
    noticedBy: 'append',
    functions: [{ name: 'key_lock', find: SHARED, replace: SHARED.replace(' for share', '') }],
  },
  'script-sent-again': {
    takesOut: 'that a script without an answer is not sent again',
    noticedBy: 'append',
    edits: [
      { file: 'src/scripts/scripts.ts', find: 'repeatable: !program.writes', replace: 'repeatable: true' },
    ],
  },
  'transfer-without-locks': {
    takesOut: 'scripts: the locks on what they name',
    noticedBy: 'bank',
    functions: [
      { name: 'key_lock', find: '  wanted record;\nbegin', replace: '  wanted record;\nbegin\n  return;' },
    ],
  },
  'lock-of-two': {
    takesOut: 'acquire: that a live lease keeps others out',
    noticedBy: 'lock',
    functions: [
      {
        name: 'acquire_lock',
        find: `if seen.owner <> the_owner and seen.expires_at >= clock_timestamp() then
    left_ms`,
        replace: `if false then
    left_ms`,
      },
      {
        name: 'acquire_lock',
        find: 'if seen.expires_at >= clock_timestamp() and seen.owner is not null then',
        replace: 'if false then',
      },
    ],
  },
  'lock-without-second-look': {
    takesOut: 'acquire: the second look, once the row is locked',
    noticedBy: 'lock',
    functions: [
      {
        name: 'acquire_lock',
        find: 'if seen.expires_at >= clock_timestamp() and seen.owner is not null then',
        replace: 'if false then',
      },
    ],
  },
  'grant-without-token': {
    takesOut: 'acquire: a token for each grant',
    noticedBy: 'lock',
    functions: [
      {
        name: 'acquire_lock',
        find: 'token = default,',
        replace: 'token = coalesce(token, 1000000),',
      },
    ],
  },
  'statement-of-two': {
    takesOut: 'the statement of a grant: that the lock is free',
    noticedBy: 'lock',
    edits: [
      {
        file: 'src/locks/sql/acquire-lock.ts',
        find: ' and (f.owner is null or f.expires_at < clock_timestamp())',
        replace: '',
      },
    ],
  },
  'statement-without-token': {
    takesOut: 'the statement of a grant: a token for each',
    noticedBy: 'lock',
    edits: [
      {
        file: 'src/locks/sql/acquire-lock.ts',
        find: 'token = default',
        replace: 'token = coalesce(l.token, 1000000)',
      },
    ],
  },
  'release-of-anothers-lock': {
    takesOut: 'the statement of a release: whose lock it is',
    noticedBy: 'lock',
    edits: [
      {
        file: 'src/locks/sql/release-lock.ts',
        find: ' and l.owner = ${p.owner} and l.token = coalesce(${p.token}, l.token)',
        replace: '',
      },
    ],
  },
  'assert-of-any-token': {
    takesOut: 'assert: the token',
    noticedBy: 'lock',
    functions: [
      {
        name: 'assert_lock',
        find: `case when l.token = assert_lock.token and l.owner is not null then l.expires_at end into held_until
    from "holdfast".lock l `,
        replace: `l.expires_at into held_until
    from "holdfast".lock l `,
      },
    ],
  },
  'extend-of-a-lost-lock': {
    takesOut: 'extend: that the lease is not over',
    noticedBy: 'lock',
    functions: [
      {
        name: 'extend_lock',
        find: 'if seen.owner = the_owner and seen.token = coalesce(the_token, seen.token) and seen.expires_at >= clock_timestamp() then',
        replace: 'if seen.owner is not null then',
      },
    ],
  },
  'extend-without-doubt': {
    takesOut: 'that an extension on its way may have shortened what its holder counts on',
    noticedBy: 'lock',
    edits: [
      {
        file: 'src/locks/lock.ts',
        find: 'this.#lease.count(Math.min(this.#lease.untilMs, sentMs + leaseMs));',
        replace: '',
      },
    ],
  },
  'sequence-reads-then-writes': {
    takesOut: 'draw: that reading and writing are one',
    noticedBy: 'sequence',
    functions: [
      {
        name: 'draw_values',
        find: 'set current = s.current + s.increment::numeric * draw_values.count,',
        replace: `set current = (select x.current from "holdfast".sequence x
          where x.tenant = draw_values.tenant and x.name = draw_values.name) + s.increment::numeric * draw_values.count,`,
      },
    ],
  },
  'sequence-key-without-lock': {
    takesOut: 'draw: the lock before a key is looked up',
    noticedBy: 'sequence',
    functions: [
      {
        name: 'draw_values',
        find: 'where s.tenant = draw_values.tenant and s.name = draw_values.name\n    for no key update;',
        replace: 'where s.tenant = draw_values.tenant and s.name = draw_values.name;',
      },
    ],
  },
  'sequence-forgets-keys': {
    takesOut: 'draw: that a request is remembered',
    noticedBy: 'sequence',
    functions: [
      {
        name: 'draw_values',
        find: `r.drawn_at > clock_timestamp() - interval '10 minutes'`,
        replace: `r.drawn_at > clock_timestamp() - interval '0 minutes'`,
      },
    ],
  },
  'sequence-drawn-again': {
    takesOut: 'that a draw without an answer is not sent again',
    noticedBy: 'sequence',
    edits: [
      {
        file: 'src/sequences/sql/draw-values.ts',
        find: `name: 'draw_values',`,
        replace: `name: 'draw_values', repeatable: true,`,
      },
    ],
  },
} as const satisfies Readonly<Record<string, Control>>

export type ControlName = keyof typeof controls
