/** What a trouble is about. */
type Subject = "clock" | "finality" | "deep blocks" | "receipts" | "ends of payments" | `task ${string}`

interface Trouble {
  readonly reason: string
  /** Payments of the chain can still be completed. */
  readonly ready: boolean
}

/**
 * What is wrong with a chain although it is read: one register for each watcher. /readyz, the metrics, the portal and the
 * alerts show it until it is noted that it is over.
 */
export class Troubles {
  readonly #open = new Map<Subject, Trouble>()

  /**
   * Notes what is wrong with something, or that nothing is. Returns whether that is another trouble than before: it is
   * logged once.
   *
   * @param ready payments of the chain can still be completed
   */
  note(subject: Subject, reason: string | undefined, ready = true): boolean {
    const before = this.#open.get(subject)?.reason
    if (reason === undefined) this.#open.delete(subject)
    else this.#open.set(subject, { reason, ready })
    return reason !== undefined && reason !== before
  }

  has(subject: Subject): boolean {
    return this.#open.has(subject)
  }

  /** Everything that is wrong; undefined where nothing is. */
  get reason(): string | undefined {
    return [...this.#open.values()].map(({ reason }) => reason).join("; ") || undefined
  }

  /** Payments of the chain can be completed, whatever is wrong. */
  get areHarmless(): boolean {
    return [...this.#open.values()].every(({ ready }) => ready)
  }
}
