import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { ScriptError, ScriptSyntaxError } from '../../scripts/errors.ts'
import { parseScript } from '../../scripts/parser.ts'
import { SequenceNotFoundError } from '../../sequences/errors.ts'
import { complete } from './complete.ts'
import { CancelledError, faultLines } from './fault-lines.ts'
import { History } from './history.ts'
import { runInteractive } from './interactive.ts'
import { Paint, took } from './paint.ts'
import { runPiped } from './piped.ts'
import type { ScriptAnswer, ShellEntry, ShellLock, ShellServices } from './services.ts'
import { Session } from './session.ts'

const never = new AbortController().signal

/** Keys, locks and a sequence in memory, and scripts that the parser has to accept. */
class Fake implements ShellServices {
  readonly released: string[] = []
  readonly scripts: { readonly text: string; readonly params: Readonly<Record<string, string>> }[] = []
  answer: (text: string, signal: AbortSignal) => Promise<ScriptAnswer> = async () =>
    await Promise.resolve({ type: 'set', revision: 0n, values: [] })
  entries: ShellEntry[] = []
  readonly #held = new Map<string, { owner: string; token: bigint }>()
  #tokens = 0n

  readonly sequences: ShellServices['sequences'] = {
    create: async () => await Promise.reject(new Error('not asked for')),
    next: async (sequence) => await Promise.reject(new SequenceNotFoundError({ sequence, tenant: '' })),
    reserve: async (_, count) =>
      await Promise.resolve({ first: 1n, last: BigInt(count), increment: 1n, count: BigInt(count) }),
    get: async () => await Promise.resolve(undefined),
    delete: async () => await Promise.resolve(false),
    list: async () => await Promise.resolve({ sequences: [], next: undefined }),
  }

  readonly locks: ShellServices['locks'] = {
    acquire: async (resource, { owner }): Promise<ShellLock> => {
      const held = this.#held.get(resource) ?? { owner, token: (this.#tokens += 1n) }
      this.#held.set(resource, held)
      return await Promise.resolve({
        held: held.owner === owner,
        fencingToken: held.owner === owner ? held.token : undefined,
        extend: async () => await Promise.resolve(this.#held.get(resource) === held),
        release: async () => {
          this.released.push(resource)
          return await Promise.resolve(this.#held.delete(resource))
        },
      })
    },
    info: async (resource) => {
      const held = this.#held.get(resource)
      return await Promise.resolve(held && this.#info(resource, held))
    },
    list: async () =>
      await Promise.resolve({
        locks: [...this.#held].map(([resource, held]) => this.#info(resource, held)),
        next: null,
      }),
  }

  readonly keys: ShellServices['keys'] = {
    list: async ({ prefix }) =>
      await Promise.resolve({
        entries: this.entries.filter(({ key }) => key.startsWith(prefix)),
        more: false,
      }),
    revisions: async (key) => await Promise.resolve(this.entries.filter((entry) => entry.key === key)),
    watch: async (prefix, { signal }) => await Promise.resolve(changes(prefix, signal)),
  }

  readonly script: ShellServices['script'] = async (text, params, { signal }) => {
    parseScript(text)
    this.scripts.push({ text, params })
    return await this.answer(text, signal)
  }

  take(resource: string): void {
    this.#held.set(resource, { owner: 'somebody', token: (this.#tokens += 1n) })
  }

  #info(resource: string, { owner, token }: { owner: string; token: bigint }) {
    return { resource, owner, fencingToken: token, expiresAt: new Date(Date.now() + 60_500) }
  }
}

async function* changes(prefix: string, signal: AbortSignal) {
  yield { kind: 'set', key: `${prefix}1`, revision: 0n, value: 'x' }
  yield { kind: 'deleted', key: `${prefix}1`, revision: 1n }
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
}

function open(options: { readonly color?: boolean; readonly timings?: boolean } = {}) {
  const fake = new Fake()
  const lines: string[] = []
  const paint = new Paint({ color: options.color === true, forPeople: true })
  const session = new Session({
    services: fake,
    paint,
    tenant: undefined,
    timings: options.timings === true,
    print: (line) => void lines.push(line),
    clear: () => void lines.push('(cleared)'),
    inputs: () => ['set a 1'],
  })
  const run = async (text: string, signal: AbortSignal = never) => {
    lines.length = 0
    await session.run(text, signal)
    return [...lines]
  }
  const onError = (error: unknown) =>
    void lines.push(...faultLines(error, session.lastScript, paint, (text) => text))
  return { fake, lines, session, run, onError, paint }
}

function entry(key: string, value: string | undefined, revision: bigint): ShellEntry {
  return { key, value, revision, expiresAt: undefined, modifiedAt: new Date(0) }
}

describe('an answer', () => {
  it.each<[ScriptAnswer, string[]]>([
    [{ type: 'set', revision: 3n, values: [] }, ['r3 set']],
    [{ type: 'notset', revision: 3n, values: [] }, ['r3 not set']],
    [{ type: 'notset', revision: -1n, values: [] }, ['not set']],
    [{ type: 'deleted', revision: 4n, values: [] }, ['r4 deleted']],
    [{ type: 'extended', revision: 4n, values: [] }, ['r4 extended']],
    [{ type: 'exists', revision: 4n, values: [] }, ['r4 exists']],
    [{ type: 'doesnotexist', revision: 4n, values: [] }, ['not found']],
    [{ type: 'none', revision: -1n, values: [] }, ['done']],
    [{ type: 'get', revision: 1n, values: [{ key: 'k', value: 'v', revision: 1n }] }, ['r1 v']],
    [{ type: 'get', revision: -1n, values: [{ key: undefined, value: '7', revision: -1n }] }, ['7']],
    [
      {
        type: 'get',
        revision: -1n,
        values: [
          { key: 'a', value: '1', revision: 2n },
          { key: 'b', value: '', revision: 0n },
        ],
      },
      ['r2 a 1', 'r0 b (empty)'],
    ],
  ])('to a script (%#)', async (answer, lines) => {
    const { fake, run } = open()
    fake.answer = async () => await Promise.resolve(answer)
    expect(await run('get k')).toEqual(lines)
  })

  it('has colours and the time it took where they are wanted', async () => {
    const { run } = open({ color: true, timings: true })
    const [line = ''] = await run('set k 1')
    // The three colours, reset each time.
    expect(line.replaceAll('\u001b', '^')).toMatch(
      /^\^\[36mr0\^\[39m \^\[32mset\^\[39m {2}\^\[2m\d+(\.\d)? ms\^\[22m$/,
    )
    expect([took(0.84), took(12.4), took(1340)]).toEqual(['0.8 ms', '12 ms', '1.3 s'])
  })

  it('has nothing in it that a terminal would obey, and of a long value only the beginning', async () => {
    const { fake, run } = open()
    fake.entries = [entry('k\u001b[2J', '\u001b]0;x\u0007\n', 0n)]
    const [line = ''] = await run('keys')
    expect(line).toBe('r0 k\\u001b[2J \\u001b]0;x\\u0007\\u000a')
    fake.answer = async () =>
      await Promise.resolve({
        type: 'get',
        revision: 0n,
        values: [{ key: 'k', value: 'x'.repeat(5000), revision: 0n }],
      })
    expect((await run('get k'))[0]).toBe(`r0 ${'x'.repeat(4000)} … 1000 more characters`)
  })
})

describe('the locks of a shell', () => {
  it('are its own: given again with the same token, extended, released, and shown', async () => {
    const { fake, run } = open()
    fake.take('taken')
    expect(await run('lock jobs/1 5000')).toEqual(['f2 locked'])
    expect(await run('lock jobs/1')).toEqual(['f2 locked'])
    expect(await run('lock taken')).toEqual(['busy'])
    expect(await run('get-lock jobs/1')).toEqual(['f2 held by this shell for 1 min more'])
    expect(await run('get-lock taken')).toEqual(['f1 held by somebody for 1 min more'])
    expect(await run('get-lock nobody')).toEqual(['free'])
    expect(await run('locks jobs')).toEqual(['f2 jobs/1  this shell, 1 min more'])
    expect(await run('extend-lock jobs/1 100')).toEqual(['f2 extended'])
    expect(await run('unlock jobs/1')).toEqual(['f2 unlocked'])
    await expect(run('unlock jobs/1')).rejects.toThrow('does not have the lock "jobs/1"')
    await expect(run('unlock taken')).rejects.toThrow('does not have the lock "taken"')
    await expect(run('lock jobs/1 1')).rejects.toThrow('MS must be a whole number from 100')
  })

  it('are released when it ends, the ephemeral ones too', async () => {
    const { fake, run, session } = open()
    await run('lock a')
    await run('elock b')
    await session.close()
    expect(fake.released.sort()).toEqual(['a', 'b'])
  })

  it('are lost to whoever takes them', async () => {
    const { fake, run } = open()
    await run('lock a')
    fake.take('a')
    expect(await run('extend-lock a')).toEqual(['f1 lost'])
    await expect(run('extend-lock a')).rejects.toThrow('does not have the lock')
  })
})

describe('an input', () => {
  it('is a script with the parameters of the shell, or a command', async () => {
    const { fake, run } = open()
    expect(await run('param @id 42')).toEqual(['@id set'])
    expect(await run(`param @name  "two  words"`)).toEqual(['@name set'])
    expect(await run('param @rest as it is')).toEqual(['@rest set'])
    expect(await run('param')).toEqual(['@id 42', '@name two  words', '@rest as it is'])
    expect(await run('unparam @rest')).toEqual(['forgotten'])
    await run('set @id @name')
    expect(fake.scripts.at(-1)).toEqual({ text: 'set @id @name', params: { id: '42', name: 'two  words' } })
    for (const bad of ['param x', 'param @id', 'param @a-b c'])
      await expect(run(bad)).rejects.toThrow('param @name value')
  })

  it('that begins with neither is refused, with what may have been meant', async () => {
    const { fake, run } = open()
    await expect(run('lokc jobs/1')).rejects.toThrow('did you mean "lock"?')
    await expect(run('gte k')).rejects.toThrow('did you mean "get"?')
    await expect(run('lock')).rejects.toThrow('something is missing')
    await expect(run('unlock a b')).rejects.toThrow('"b" is one word too many')
    await expect(run('sequence reset a')).rejects.toThrow('create, next, reserve, get, delete')
    expect(fake.scripts).toEqual([])
    expect(await run('# only a comment')).toEqual([])
  })

  it('asks for help, for what was typed, and for a clean screen', async () => {
    const { run } = open()
    const help = await run('help')
    for (const name of ['lock', 'elock', 'sequence', 'keys', 'watch', 'param', 'run', 'exit'])
      expect(
        help.some((line) => line.trimStart().startsWith(name)),
        name,
      ).toBe(true)
    expect((await run('help answers')).join('\n')).toContain('fencing token')
    expect(await run('help unlock')).toEqual(['unlock RESOURCE', 'Release a lock of this shell'])
    await expect(run('help nothing')).rejects.toThrow('there is no help about "nothing"')
    expect(await run('history')).toEqual(['set a 1'])
    expect(await run('clear')).toEqual(['(cleared)'])
  })

  it('shows revisions, newest first, and each change until it is told to stop', async () => {
    const { fake, run, lines, session } = open()
    fake.entries = [entry('k', undefined, 1n), entry('k', 'v', 0n)]
    expect(await run('history k')).toEqual(['r1 1970-01-01T00:00:00Z deleted', 'r0 1970-01-01T00:00:00Z v'])
    expect(await run('history none')).toEqual(['no revisions'])
    const stop = new AbortController()
    lines.length = 0
    const watching = session.run('watch jobs/', stop.signal)
    while (lines.length < 3) await new Promise((resolve) => setImmediate(resolve))
    stop.abort(new CancelledError())
    await watching
    expect(lines).toEqual(['watching; Ctrl-C ends it', 'r0 set jobs/1 x', 'r1 deleted jobs/1'])
  })
})

describe('an error', () => {
  it('of a script shows the place, by column or by line', async () => {
    const { fake, session, onError, lines } = open()
    await session.run('set k ~', never).catch(onError)
    expect(lines).toEqual(['error: line 1, column 7: unexpected character "~"', '  set k ~', '        ^'])
    lines.length = 0
    fake.answer = async () =>
      await Promise.reject(
        new ScriptError({ reason: 'division-by-zero', line: 2, problem: 'division by zero' }),
      )
    await session.run('let a = 0\n  return 1 / a', never).catch(onError)
    expect(lines).toEqual(['error: line 2 of the script: division by zero', '    return 1 / a', '    ^'])
    expect(new ScriptSyntaxError({ line: 1, column: 1, problem: 'p', excerpt: 'e' }).message).toContain('e')
  })
})

describe('piped input', () => {
  const piped = async (text: string, keepsGoing = false) => {
    const opened = open()
    const { session, onError } = opened
    const isFine = await runPiped({
      input: Readable.from([text]),
      session,
      keepsGoing,
      onError,
      signal: never,
    })
    return { ...opened, isFine }
  }

  it('runs line by line, a script when it is complete, without a prompt', async () => {
    const { fake, isFine, lines } = await piped(
      '# a comment\nlock a\r\n\nif 1 = 1 then\n  set k 1\nend\nsequence reserve s 3\n',
    )
    expect(isFine).toBe(true)
    expect(lines).toEqual(['f1 locked', 'r0 set', '1..3'])
    expect(fake.scripts.map(({ text }) => text)).toEqual(['if 1 = 1 then\n  set k 1\nend'])
  })

  it('ends at the first error, or goes on and says so at the end', async () => {
    const ended = await piped('sequence next s\nlock a\n')
    expect(ended.isFine).toBe(false)
    expect(ended.lines).toEqual([
      'error: there is no sequence "s"; check name and tenant, or create it first',
    ])
    const went = await piped('sequence next s\nlock a\n', true)
    expect(went.isFine).toBe(false)
    expect(went.lines.at(-1)).toBe('f1 locked')
  })

  it('says of a script without its end that it is not complete, and runs nothing after exit', async () => {
    const open = await piped('if 1 = 1 then\n  set k 1\n')
    expect(open.isFine).toBe(false)
    expect(open.lines[0]).toMatch(/^error: line 2, column \d+:/)
    expect((await piped('exit\nlock a')).lines).toEqual([])
  })
})

describe('completion', () => {
  const completed = async (line: string, pending = '') => {
    const { fake, session } = open()
    fake.entries = [
      entry('jobs/1', '', 0n),
      entry('jobs/two words', '', 0n),
      entry('plain', '', 0n),
      entry('end', '', 0n),
      entry('bad\u001b', '', 0n),
    ]
    session.params.set('id', '1')
    fake.take('jobs/1/lock')
    return await complete(session, line, pending)
  }

  it('of the first word knows commands and statements', async () => {
    expect(await completed('unl')).toEqual([['unlock '], 'unl'])
    expect(await completed('  ext')).toEqual([['extend ', 'extend-lock '], 'ext'])
    expect((await completed(''))[0].length).toBeGreaterThan(30)
  })

  it('of what a command takes asks the database, and quotes what has blanks', async () => {
    expect(await completed('lock jobs')).toEqual([['jobs/1/lock '], 'jobs'])
    expect(await completed('history jobs/')).toEqual([['jobs/1 ', '"jobs/two words" '], 'jobs/'])
    expect(await completed('history "jobs/t')).toEqual([['"jobs/two words" '], '"jobs/t'])
    expect(await completed('lock jobs/1/lock 3')).toEqual([[], '3'])
    expect(await completed('sequence re')).toEqual([['reserve '], 're'])
    expect((await completed('help lo'))[0]).toEqual(['locks ', 'lock '])
    expect((await completed('run package.j'))[0]).toEqual(['package.json '])
  })

  it('of a script knows keys, parameters, words and functions', async () => {
    expect(await completed('get pl')).toEqual([['plain '], 'pl'])
    expect(await completed('get jo')).toEqual([['`jobs/1` ', '`jobs/two words` '], 'jo'])
    expect(await completed('get "jobs/1')).toEqual([['"jobs/1" '], '"jobs/1'])
    expect(await completed('get en')).toEqual([['`end` '], 'en'])
    expect(await completed('set @')).toEqual([['@id'], '@'])
    expect((await completed('  re', 'if x then'))[0]).toContain('return')
    expect((await completed('return upp'))[0]).toEqual(['upper('])
  })

  it('offers nothing where the database does not answer', async () => {
    const { fake, session } = open()
    Object.assign(fake.keys, { list: async () => await Promise.reject(new Error('down')) })
    expect(await complete(session, 'get a', '')).toEqual([[], 'a'])
    Object.assign(fake.keys, { list: async () => await new Promise(() => {}) })
    expect(await complete(session, 'get a', '')).toEqual([[], 'a'])
  })
})

/** A terminal without a screen: keys go in, what would be shown comes out. */
function openTerminal() {
  const opened = open()
  const input = new PassThrough()
  const output = new PassThrough()
  const history = new History(undefined)
  let shown = ''
  output.on('data', (chunk: Buffer) => {
    shown += chunk.toString()
  })
  const stop = new AbortController()
  const { session, lines } = opened
  const ended = runInteractive({
    input,
    output,
    session,
    history,
    complete: async (line, pending) => await complete(session, line, pending),
    onError: opened.onError,
    signal: stop.signal,
  })
  return {
    ...opened,
    history,
    ended,
    stop,
    /** Waits until the terminal has shown `text`. */
    shows: async (text: string) => {
      while (!shown.includes(text)) await new Promise((resolve) => setImmediate(resolve))
    },
    type: (keys: string) => void input.write(keys),
    /** Waits until so many lines have been answered. */
    answers: async (count: number) => {
      while (lines.length < count) await new Promise((resolve) => setImmediate(resolve))
      return lines
    },
  }
}

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const UP = '\u001b[A'

describe('at a terminal', () => {
  it('runs what is typed, recalls whole inputs with the arrow keys, and ends with Ctrl-D', async () => {
    const { type, answers, ended, fake, history, shows } = openTerminal()
    type('if 1 = 1 then\r')
    await shows('     ...> ')
    type('set k 1\rend\r')
    expect(await answers(1)).toEqual(['r0 set'])
    type(`${UP}\r`)
    await answers(2)
    type(CTRL_D)
    await ended
    expect(fake.scripts.map(({ text }) => text)).toEqual([
      'if 1 = 1 then\nset k 1\nend',
      'if 1 = 1 then set k 1 end',
    ])
    expect(history.entries).toEqual(['if 1 = 1 then set k 1 end'])
  })

  it('drops what is typed with Ctrl-C, a script that is not complete too', async () => {
    const { type, answers, fake, ended } = openTerminal()
    type('if 1 = 1 then\r')
    type(`set k 1${CTRL_C}`)
    type('get k\r')
    await answers(1)
    type('exit\r')
    await ended
    expect(fake.scripts.map(({ text }) => text)).toEqual(['get k'])
  })

  it('gives up what runs with Ctrl-C, and goes on', async () => {
    const { type, answers, fake, ended, lines } = openTerminal()
    let aborted = false
    const started = new Promise<void>((resolve) => {
      fake.answer = async (_, signal) => {
        signal.addEventListener('abort', () => {
          aborted = true
        })
        resolve()
        return await new Promise(() => {})
      }
    })
    type('sleep 60000\r')
    await started
    type(CTRL_C)
    expect((await answers(1))[0]).toMatch(/^given up/)
    expect(aborted).toBe(true)
    type('lock a\r')
    await answers(2)
    expect(lines[1]).toBe('f1 locked')
    type('quit\r')
    await ended
  })

  it('runs what was typed ahead, in order, and tells errors in between', async () => {
    const { type, ended, lines } = openTerminal()
    type('lock a\rsequence next s\rlock b\rexit\rlock c\r')
    await ended
    expect(lines).toEqual([
      'f1 locked',
      'error: there is no sequence "s"; check name and tenant, or create it first',
      'f2 locked',
    ])
  })

  it('completes with Tab', async () => {
    const { type, answers, fake, ended, shows } = openTerminal()
    fake.take('jobs/1/lock')
    type('get-l\t')
    await shows('get-lock ')
    type('jo\t')
    await shows('jobs/1/lock ')
    type('\r')
    expect(await answers(1)).toEqual(['f1 held by somebody for 1 min more'])
    type('exit\r')
    await ended
  })

  it('ends when it is told to, and gives up what runs', async () => {
    const { type, stop, fake, ended, lines } = openTerminal()
    const started = new Promise<void>((resolve) => {
      fake.answer = async () => {
        resolve()
        return await new Promise(() => {})
      }
    })
    type('sleep 60000\r')
    await started
    stop.abort()
    await ended
    expect(lines[0]).toMatch(/^given up/)
  })
})
