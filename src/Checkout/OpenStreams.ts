/** Streams of all payments together: each holds a connection, of which the API needs most. */
const mostOfAll = 1_000
const mostOfPayment = 3
/** Of one client: an IPv4 address, or an IPv6 /64. */
const mostOfClient = 20

/** How many streams are open, by payment and by client. A page beyond a limit polls instead. */
export class OpenStreams {
  readonly #counts = new Map<string, number>()

  #names(payment: string, client: string): ReadonlyArray<readonly [name: string, most: number]> {
    return [
      ["", mostOfAll],
      [`payment ${payment}`, mostOfPayment],
      [`client ${client}`, mostOfClient]
    ]
  }

  /** Whether another one may be opened. */
  mayOpen(payment: string, client: string): boolean {
    return this.#names(payment, client).every(([name, most]) => (this.#counts.get(name) ?? 0) < most)
  }

  opened(payment: string, client: string): void {
    for (const [name] of this.#names(payment, client)) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  closed(payment: string, client: string): void {
    for (const [name] of this.#names(payment, client)) {
      const left = (this.#counts.get(name) ?? 1) - 1
      if (left === 0) this.#counts.delete(name)
      else this.#counts.set(name, left)
    }
  }

  /** The count; absent once all are closed. */
  get size(): number {
    return this.#counts.size
  }
}
