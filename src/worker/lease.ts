/** A batch of jobs that this worker holds under one fencing token, and how far it has come with them. */
export class Lease {
  readonly token: bigint
  /** The life of this worker that claimed it: a process declared dead goes on under another id. */
  readonly workerId: bigint
  /** How many jobs it was given for. */
  readonly size: number
  /** Jobs of which nothing is recorded yet. */
  unsettled: number

  constructor(token: bigint, workerId: bigint, size: number) {
    this.token = token
    this.workerId = workerId
    this.size = size
    this.unsettled = size
  }
}
