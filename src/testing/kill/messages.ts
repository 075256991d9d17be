/** What a child is to do, and where. */
export interface KillOrder {
  /** Address of the app file, as a `file:` URL. */
  readonly appUrl: string
  readonly database: string
  readonly leaseMs: number
  readonly jobId: string
  /** The step at which it stands still and waits for its death; none if it is to come to the end. */
  readonly target: number | undefined
}

/** What a child tells. Sent before it goes on, so that what was told before a SIGKILL has arrived. */
export type KillMessage =
  | { readonly kind: 'attempt' }
  | { readonly kind: 'step'; readonly step: string }
  /** It stands at its target. */
  | { readonly kind: 'here' }
  /** Nothing is left to do. */
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly message: string }
