/** Of server-sent events that tell a page of changes. */
export const streamHeaders = {
  "content-type": "text/event-stream",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  // Proxies such as nginx would collect what is meant to arrive at once.
  "x-accel-buffering": "no"
}

/** Streams of a room together: each holds a connection, of which the API needs most. */
const mostOfAll = 1_000
/** Of one payment, or one session. */
const mostOfSubject = 3
/** Of one client: an IPv4 address, or an IPv6 /64; or of one account. */
const mostOfClient = 20

/** How many streams are open, by what they are about and by client. A page beyond a limit polls instead, or stays as it is. */
export class OpenStreams {
  readonly #counts = new Map<string, number>()

  #names(subject: string, client: string): ReadonlyArray<readonly [name: string, most: number]> {
    return [
      ["", mostOfAll],
      [`subject ${subject}`, mostOfSubject],
      [`client ${client}`, mostOfClient]
    ]
  }

  /** Whether another one may be opened. */
  mayOpen(subject: string, client: string): boolean {
    return this.#names(subject, client).every(([name, most]) => (this.#counts.get(name) ?? 0) < most)
  }

  opened(subject: string, client: string): void {
    for (const [name] of this.#names(subject, client)) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  closed(subject: string, client: string): void {
    for (const [name] of this.#names(subject, client)) {
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
