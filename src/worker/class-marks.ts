/** A mark is used after so long even if a transaction of its time still runs. */
const GIVE_UP_MS = 500
/** Marks of a class that wait to be used. The oldest is used first, the newest last. */
const MAX_WAITING = 4

/** Which transactions a look knew of: those below `xmin` had ended, those from `xmax` on had not begun. */
export interface Snapshot {
  readonly xmin: bigint
  readonly xmax: bigint
  /** Of those between the two, the ones that were under way. */
  readonly running: readonly bigint[]
}

/** Places behind `after`, up to and with `upto`. */
export interface Stretch {
  readonly after: bigint
  readonly upto: bigint
}

interface Mark {
  readonly atMs: number
  readonly seq: bigint
  /** Whoever has drawn a place up to `seq` is a transaction below it. Unknown until the look after. */
  readonly xmax: bigint | undefined
}

/**
 * The marks of one class: up to which place everything was taken.
 *
 * A place is drawn before it is committed, so a mark is not used at once. The snapshot of the next look tells which
 * transactions can have drawn a place up to the mark; that of the same look does not, because places are drawn while it
 * works. The mark is used once a look has gone past it to which all of these had ended. One of them may stay open for
 * long: half a second later the mark is used all the same, and what the marks pass from then until that transaction
 * ends is given back as a stretch to look at once more.
 */
export class ClassMarks {
  #usable = 0n
  #waiting: readonly Mark[] = []
  /** Transactions that were not waited for, each with what the marks have passed meanwhile. */
  readonly #stragglers = new Map<bigint, Stretch>()

  /** Where looks start. */
  get usable(): bigint {
    return this.#usable
  }

  /**
   * A look with `snapshot`, whose answer came at `nowMs`, saw everything from {@link usable} up to `seq`. Returns where
   * transactions that were not waited for, and have ended since, may have left jobs.
   */
  saw(seq: bigint, snapshot: Snapshot, nowMs: number): readonly Stretch[] {
    const waiting = this.#waiting.map((mark) => ({ ...mark, xmax: mark.xmax ?? snapshot.xmax }))
    const isPassed = (mark: Mark) => (mark.xmax as bigint) <= snapshot.xmin && mark.seq <= seq
    const isUsed = (mark: Mark) => isPassed(mark) || nowMs - mark.atMs >= GIVE_UP_MS
    const used = waiting.filter(isUsed)
    const still = waiting.filter((mark) => !isUsed(mark))

    const late = this.#takeEnded(snapshot)
    const from = this.#usable
    for (const mark of used) if (mark.seq > this.#usable) this.#usable = mark.seq
    this.#leaveBehind(
      used.filter((mark) => !isPassed(mark)),
      from,
      snapshot,
    )

    const newest = still.at(-1)?.seq ?? this.#usable
    const added = seq > newest && seq > this.#usable ? [{ atMs: nowMs, seq, xmax: undefined }] : []
    this.#waiting = [...(still.length < MAX_WAITING ? still : still.slice(0, -1)), ...added]
    return late
  }

  #takeEnded({ xmin, running }: Snapshot): readonly Stretch[] {
    const ended = [...this.#stragglers].filter(([xid]) => xid < xmin || !running.includes(xid))
    for (const [xid] of ended) this.#stragglers.delete(xid)
    return ended.map(([, stretch]) => stretch)
  }

  #leaveBehind(givenUp: readonly Mark[], from: bigint, { running }: Snapshot): void {
    for (const xid of running) {
      if (!givenUp.some((mark) => xid < (mark.xmax as bigint))) continue
      this.#stragglers.set(xid, { after: this.#stragglers.get(xid)?.after ?? from, upto: this.#usable })
    }
  }
}
