/** A script as the parser understood it. `line` is 1-based, and where a run-time error is told. */

/** Null, boolean, integer, float (a `number`), text. */
export type Constant = null | boolean | bigint | number | string

export interface Key {
  /** Of a parameter the name, else the key itself. */
  readonly text: string
  readonly isParameter: boolean
  readonly line: number
}

export type BinaryOperator = '+' | '-' | '*' | '/' | '<' | '>' | '<=' | '>=' | '==' | '!=' | '..'

/** Operands of one precedence level, from left to right: a list, so that long ones do not nest. */
export interface Chain {
  readonly kind: 'chain'
  readonly first: Expression
  readonly rest: readonly {
    readonly operator: BinaryOperator
    readonly operand: Expression
    readonly line: number
  }[]
  readonly line: number
}

export interface Logic {
  readonly kind: 'logic'
  readonly operator: '&&' | '||'
  readonly operands: readonly Expression[]
  readonly line: number
}

/** `get`, `exists`, a listing. A listing gives an array. */
export interface Read {
  readonly kind: 'read'
  readonly command: 'get' | 'exists' | 'bucket' | 'prefix'
  readonly ephemeral: boolean
  readonly key: Key
  /** A revision. */
  readonly at?: Expression
  /** Epoch milliseconds. */
  readonly asOf?: Expression
  readonly line: number
}

export type Expression =
  | { readonly kind: 'constant'; readonly value: Constant; readonly line: number }
  | { readonly kind: 'parameter' | 'variable'; readonly name: string; readonly line: number }
  | {
      readonly kind: 'call'
      readonly name: string
      readonly args: readonly Expression[]
      readonly line: number
    }
  | {
      readonly kind: 'unary'
      readonly operator: 'not' | '-'
      readonly operand: Expression
      readonly line: number
    }
  | Chain
  | Logic
  | {
      readonly kind: 'index'
      readonly array: Expression
      readonly index: Expression
      readonly line: number
    }
  | { readonly kind: 'array'; readonly items: readonly Expression[]; readonly line: number }
  | { readonly kind: 'status'; readonly word: 'set' | 'found'; readonly line: number }
  | Read

/** What a `set` asks for besides the value. Of a flag that is given twice, the last counts. */
export interface SetFlags {
  readonly ifAbsent: boolean
  readonly ifPresent: boolean
  readonly norev: boolean
  readonly ttl?: Expression
  readonly ifValue?: Expression
  readonly ifRevision?: Expression
}

export interface SetStatement extends SetFlags {
  readonly kind: 'set'
  readonly ephemeral: boolean
  readonly key: Key
  readonly value: Expression
  readonly line: number
}

export interface DeleteStatement {
  readonly kind: 'delete'
  readonly ephemeral: boolean
  readonly key: Key
  readonly line: number
}

export interface ExtendStatement {
  readonly kind: 'extend'
  readonly ephemeral: boolean
  readonly key: Key
  readonly ttl: Expression
  readonly line: number
}

export type Write = SetStatement | DeleteStatement | ExtendStatement

export interface BeginOption {
  readonly name: string
  /** The word or literal; undefined for a parameter, which is not allowed. */
  readonly value: Constant | undefined
  readonly line: number
}

export type Statement =
  | Write
  | Read
  | {
      readonly kind: 'let'
      readonly name: string
      readonly value: Expression | Write
      readonly line: number
    }
  | {
      readonly kind: 'if'
      readonly condition: Expression
      readonly body: readonly Statement[]
      readonly otherwise: readonly Statement[]
      readonly line: number
    }
  | {
      readonly kind: 'for'
      readonly name: string
      readonly items: Expression
      readonly body: readonly Statement[]
      readonly line: number
    }
  | {
      readonly kind: 'begin'
      readonly options: readonly BeginOption[]
      readonly body: readonly Statement[]
      readonly line: number
    }
  | { readonly kind: 'commit' | 'rollback'; readonly line: number }
  | { readonly kind: 'return'; readonly value?: Expression; readonly line: number }
  | { readonly kind: 'sleep'; readonly duration: Expression; readonly line: number }
  | { readonly kind: 'throw'; readonly value: Expression; readonly line: number }
