import { Effect, Stream } from "effect"

/** Of server-sent events that tell a page of changes. */
export const streamHeaders = {
  "content-type": "text/event-stream",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  // Proxies such as nginx would collect what is meant to arrive at once.
  "x-accel-buffering": "no"
}

export interface StreamLimits {
  /** Streams of a room together: each holds a connection, of which the API needs most. */
  readonly ofAll: number
  /** Of one payment, one session, or one person. */
  readonly ofSubject: number
  /** Of one client: an IPv4 address, or an IPv6 /64; or of one account. */
  readonly ofClient: number
}

/** How many streams are open, by what they are about and by client. A page beyond a limit polls instead, or stays as it is. */
export class OpenStreams {
  readonly #counts = new Map<string, number>()
  readonly #most: StreamLimits

  constructor(most: StreamLimits = { ofAll: 1_000, ofSubject: 3, ofClient: 20 }) {
    this.#most = most
  }

  #names(subject: string, client: string): ReadonlyArray<readonly [name: string, most: number]> {
    return [
      ["", this.#most.ofAll],
      [`subject ${subject}`, this.#most.ofSubject],
      [`client ${client}`, this.#most.ofClient]
    ]
  }

  /** Whether another one may be opened. */
  mayOpen(subject: string, client: string): boolean {
    return this.#names(subject, client).every(([name, most]) => (this.#counts.get(name) ?? 0) < most)
  }

  #count(subject: string, client: string, by: 1 | -1): void {
    for (const [name] of this.#names(subject, client)) {
      const left = (this.#counts.get(name) ?? 0) + by
      if (left === 0) this.#counts.delete(name)
      else this.#counts.set(name, left)
    }
  }

  /**
   * A stream that counts from its first pull to its end. Many may have been answered before the first of them is counted:
   * `beyond` is what those beyond a limit are then.
   */
  counted<A, E, R>(
    subject: string,
    client: string,
    stream: Stream.Stream<A, E, R>,
    beyond: Stream.Stream<A> = Stream.empty
  ): Stream.Stream<A, E, R> {
    const place = Effect.acquireRelease(
      Effect.sync(() => {
        const isOpen = this.mayOpen(subject, client)
        if (isOpen) this.#count(subject, client, 1)
        return isOpen
      }),
      (isOpen) => Effect.sync(() => isOpen && this.#count(subject, client, -1))
    )
    return Stream.unwrapScoped(Effect.map(place, (isOpen) => (isOpen ? stream : beyond)))
  }

  /** The count; absent once all are closed. */
  get size(): number {
    return this.#counts.size
  }
}
