import { HoldfastError, NotStorableError, TooLargeError } from './errors.ts'

/** Levels of nesting that are accepted: far below what would exhaust a stack, here or in PostgreSQL. */
const MAX_DEPTH = 500
/** Anything but what JSON writes as it is: a text with one of these (quotes, controls, surrogates) needs a look. */
const NEEDS_CARE = /[^\x20\x21\x23-\x5b\x5d-\ud7ff\ue000-\uffff]/
const LONE_SURROGATE = /\p{Cs}/gu
const PLAIN_NAME = /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u

/** Objects that JSON would turn into `{}` or otherwise lose. */
const LOSSY_TAGS = new Set(
  [
    'Map Set WeakMap WeakSet WeakRef Promise RegExp Error ArrayBuffer SharedArrayBuffer DataView',
    'Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array Float32Array',
    'Float64Array BigInt64Array BigUint64Array String Number Boolean BigInt Symbol Generator AsyncGenerator',
  ]
    .join(' ')
    .split(' '),
)

export interface JsonOptions {
  /** What the value is to the caller, as the head of paths in errors: `input`. */
  readonly field: string
  readonly maxBytes: number
}

/**
 * Turns data of a caller into JSON text that PostgreSQL stores digit for digit.
 *
 * By rule: `undefined` members are left out, `undefined` itself is `null`, a Date becomes its ISO text,
 * `toJSON` is called, members named by symbols are left out, objects of a class keep their own members.
 * Everything else comes back equal, `-0` included, or is refused.
 *
 * @throws {NotStorableError} NaN, an infinity, a BigInt, function or symbol, a Map, Set or the like, a cycle,
 *   a hole or `undefined` in an array, NUL, half a surrogate pair, an invalid Date, a getter or `toJSON` that
 *   throws, nesting deeper than 500. Names the path.
 * @throws {TooLargeError} More than `maxBytes` of UTF-8.
 */
export function toStorableJson(value: unknown, options: JsonOptions): string {
  return new JsonWriter(options, undefined).toJson(value)
}

/** What became of a handler's value. */
export interface RecordableJson {
  readonly json: string
  /** True if something in it had to be replaced; `problem` says what came first. */
  readonly altered: boolean
  readonly problem?: string
}

/**
 * Turns data of a handler into JSON text that can be stored, whatever it is. Never throws.
 *
 * Where {@link toStorableJson} would refuse, the nearest text is stored: `"10"` for `10n`, `"NaN"`,
 * `"[circular]"`, U+FFFD for NUL. A value that is too large is `null`.
 */
export function toRecordableJson(
  value: unknown,
  options: { readonly maxBytes: number; readonly field?: string },
): RecordableJson {
  const problems: string[] = []
  const writer = new JsonWriter(
    { field: options.field ?? 'result', maxBytes: options.maxBytes },
    (problem) => {
      if (problems.length === 0) problems.push(problem)
    },
  )
  try {
    const json = writer.toJson(value)
    const [problem] = problems
    return problem === undefined ? { json, altered: false } : { json, altered: true, problem }
  } catch (error) {
    // Only TooLargeError and an exhausted stack get here: the writer answers for the rest.
    const problem = error instanceof HoldfastError ? error.message : 'the value could not be read'
    return { json: 'null', altered: true, problem }
  }
}

/** Cuts `text` to at most `maxBytes` of UTF-8, never inside a character. The result is well formed. */
export function truncateUtf8(text: string, maxBytes: number): string {
  // Each UTF-16 unit takes a byte or more, so what lies beyond cannot fit: 5 MB are never encoded for 16 KiB.
  let head = text.slice(0, maxBytes)
  if (head.length < text.length && isHighSurrogate(head.charCodeAt(head.length - 1))) head = head.slice(0, -1)
  const encoded = Buffer.from(head)
  let end = Math.min(encoded.length, maxBytes)
  while (end > 0 && isContinuation(encoded[end])) end -= 1
  return encoded.toString('utf8', 0, end)
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

type OnFault = (problem: string) => void

/**
 * Writes one value. Each member is read once: what was checked is what is written, getters and proxies
 * included. With `onFault` faults are reported and replaced; without, they are thrown.
 */
class JsonWriter {
  readonly #field: string
  readonly #maxBytes: number
  readonly #onFault: OnFault | undefined
  readonly #path: (string | number)[] = []
  readonly #ancestors: object[] = []
  #written = 0
  #thrown: unknown

  constructor(options: JsonOptions, onFault: OnFault | undefined) {
    this.#field = options.field
    this.#maxBytes = options.maxBytes
    this.#onFault = onFault
  }

  toJson(value: unknown): string {
    const json = value === undefined ? 'null' : this.#write(value)
    // A unit of UTF-16 is at most three bytes: small values need no count.
    if (json.length * 3 > this.#maxBytes) this.#checkSize(Buffer.byteLength(json))
    return json
  }

  #write(value: unknown): string {
    switch (typeof value) {
      case 'string':
        return this.#text(value)
      case 'number':
        if (!Number.isFinite(value)) return this.#replace(`${value} is not a JSON number`, `"${value}"`)
        return this.#count(Object.is(value, -0) ? '-0' : String(value))
      case 'boolean':
        return this.#count(value ? 'true' : 'false')
      case 'object':
        return value === null ? this.#count('null') : this.#object(value)
      case 'bigint':
        return this.#replace('a BigInt is not a JSON value; convert it to text', `"${value}"`)
      case 'undefined':
        return this.#replace('undefined in this place would become null; use null', 'null')
      default:
        return this.#replace(`a ${typeof value} is not a JSON value`, 'null')
    }
  }

  #object(value: object): string {
    if (this.#ancestors.includes(value)) {
      return this.#replace('it contains itself', '"[circular]"')
    }
    if (this.#ancestors.length >= MAX_DEPTH) {
      return this.#replace(`it is nested deeper than ${MAX_DEPTH} levels`, '"[too deep]"')
    }
    this.#ancestors.push(value)
    const depth = this.#path.length
    try {
      return this.#members(value)
    } catch (error) {
      if (error === this.#thrown && error !== undefined) throw error
      return this.#replace('reading it threw an error', '"[unreadable]"', error)
    } finally {
      this.#path.length = depth
      this.#ancestors.pop()
    }
  }

  #members(value: object): string {
    if (Array.isArray(value)) return this.#array(value)
    const prototype: unknown = Object.getPrototypeOf(value)
    const plain = prototype === Object.prototype || prototype === null
    const { toJSON } = value as { readonly toJSON?: unknown }
    if (typeof toJSON === 'function') return this.#converted(value, toJSON)
    if (!plain) {
      const tag = Object.prototype.toString.call(value).slice(8, -1)
      if (LOSSY_TAGS.has(tag)) {
        return this.#replace(
          `${tag} is not a JSON value; convert it to an object, array or text`,
          `"[${tag}]"`,
        )
      }
    }
    return this.#record(value as Record<string, unknown>)
  }

  #record(value: Record<string, unknown>): string {
    let json = '{'
    for (const name of Object.keys(value)) {
      const member = value[name]
      if (member === undefined) continue
      this.#path.push(name)
      json += `${json.length === 1 ? '' : ','}${this.#text(name)}:${this.#write(member)}`
      this.#path.pop()
    }
    return this.#count(`${json}}`, 2)
  }

  #array(value: readonly unknown[]): string {
    let json = '['
    for (let index = 0; index < value.length; index += 1) {
      this.#path.push(index)
      json += `${index === 0 ? '' : ','}${this.#write(value[index])}`
      this.#path.pop()
    }
    return this.#count(`${json}]`, 2)
  }

  #converted(value: object, toJSON: CallableFunction): string {
    if (value instanceof Date && Number.isNaN(value.getTime())) {
      return this.#replace('it is an invalid Date', 'null')
    }
    const converted: unknown = Reflect.apply(toJSON, value, [String(this.#path.at(-1) ?? '')])
    // JSON asks only once: an object that converts to itself is written by its members.
    if (typeof converted !== 'object' || converted === null) return this.#write(converted)
    if (Array.isArray(converted)) return this.#array(converted)
    return this.#record(converted as Record<string, unknown>)
  }

  #text(text: string): string {
    if (!NEEDS_CARE.test(text)) return this.#count(`"${text}"`)
    let storable = text
    if (storable.includes('\0')) {
      this.#fault('PostgreSQL cannot hold the character NUL (\\u0000)')
      storable = storable.replaceAll('\0', '\ufffd')
    }
    if (storable.search(LONE_SURROGATE) >= 0) {
      this.#fault('it has half of a surrogate pair, which is not well-formed text')
      storable = storable.replace(LONE_SURROGATE, '\ufffd')
    }
    return this.#count(JSON.stringify(storable))
  }

  /** Ends the writing of a value that has outgrown the limit, so that shared parts cannot multiply for ever. */
  #count(json: string, length = json.length): string {
    this.#written += length
    if (this.#written > this.#maxBytes) this.#checkSize(this.#written)
    return json
  }

  #checkSize(bytes: number): void {
    if (bytes <= this.#maxBytes) return
    this.#thrown = new TooLargeError({ field: this.#field, bytes, maxBytes: this.#maxBytes })
    throw this.#thrown
  }

  #replace(problem: string, replacement: string, cause?: unknown): string {
    this.#fault(problem, cause)
    return this.#count(replacement)
  }

  #fault(problem: string, cause?: unknown): void {
    const path = this.#field + this.#path.map(pathStep).join('')
    if (this.#onFault) {
      this.#onFault(`${path}: ${problem}`)
      return
    }
    const options = cause === undefined ? undefined : { cause }
    this.#thrown = new NotStorableError({ path: truncateUtf8(path, 1024), problem }, options)
    throw this.#thrown
  }
}

function pathStep(step: string | number): string {
  if (typeof step === 'number') return `[${step}]`
  return PLAIN_NAME.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`
}
