/** The subject of a problem. */
type Subject = "clock" | "finality" | "deep blocks" | "receipts" | "ends of payments" | `task ${string}`

interface Trouble {
  readonly reason: string
  /** Payments of the chain can still be completed. */
  readonly ready: boolean
}

/**
 * The problems of a chain that is still read: one register for each watcher. /readyz, the metrics, the portal and the
 * alerts show each problem until it is cleared.
 */
export class Troubles {
  readonly #open = new Map<Subject, Trouble>()

  /**
   * Sets or clears the problem of a subject. Returns whether it is another problem than before: it is logged once.
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

  /** All problems; undefined without one. */
  get reason(): string | undefined {
    return [...this.#open.values()].map(({ reason }) => reason).join("; ") || undefined
  }

  /** Whether payments of the chain can be completed despite the problems. */
  get areHarmless(): boolean {
    return [...this.#open.values()].every(({ ready }) => ready)
  }
}
