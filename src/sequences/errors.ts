import { HoldfastError } from '../base/errors.ts'

/** Which sequence an error is about. */
export interface SequenceFacts {
  readonly sequence: string
  /** Empty where there are no tenants. */
  readonly tenant: string
}

function named({ sequence, tenant }: SequenceFacts): string {
  return `sequence "${sequence}"${tenant === '' ? '' : ` of tenant "${tenant}"`}`
}

/** A sequence of this name is there, and stays as it is. Use it, or choose another name. */
export class SequenceExistsError extends HoldfastError {
  override readonly name = 'SequenceExistsError'
  readonly code = 'SEQUENCE_EXISTS'
  readonly sequence: string
  readonly tenant: string

  constructor(facts: SequenceFacts, options?: ErrorOptions) {
    super(`the ${named(facts)} exists and was left as it is; use it, or choose another name`, options)
    this.sequence = facts.sequence
    this.tenant = facts.tenant
  }
}

/** There is no such sequence, and none was made. Check name and tenant, or create it first. */
export class SequenceNotFoundError extends HoldfastError {
  override readonly name = 'SequenceNotFoundError'
  readonly code = 'SEQUENCE_NOT_FOUND'
  readonly sequence: string
  readonly tenant: string

  constructor(facts: SequenceFacts, options?: ErrorOptions) {
    super(`there is no ${named(facts)}; check name and tenant, or create it first`, options)
    this.sequence = facts.sequence
    this.tenant = facts.tenant
  }
}

/** The values do not fit below the sequence's maximum, or into 64 bits. None was drawn; `available` would fit. */
export class SequenceExhaustedError extends HoldfastError {
  override readonly name = 'SequenceExhaustedError'
  readonly code = 'SEQUENCE_EXHAUSTED'
  readonly sequence: string
  readonly tenant: string
  /** How many were asked for. */
  readonly count: bigint
  /** How many there still are. */
  readonly available: bigint

  constructor(
    facts: SequenceFacts & { readonly count: bigint; readonly available: bigint },
    options?: ErrorOptions,
  ) {
    const { count, available } = facts
    super(
      `the ${named(facts)} has ${available === 0n ? 'no more values' : `only ${available} more values, not ${count}`}; ` +
        'nothing was drawn: use another sequence, or ask for less',
      options,
    )
    this.sequence = facts.sequence
    this.tenant = facts.tenant
    this.count = count
    this.available = available
  }
}
