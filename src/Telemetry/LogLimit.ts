import { Clock, Effect } from "effect"

const minute = 60_000

/**
 * Rate limits log lines that others can cause: a dead receiver, a client that guesses keys, a slow disk. Limits apply
 * per key and minute, and to all keys; a line's `omitted` counts the lines dropped before it.
 */
export class LogLimit {
  readonly #perKey: number
  readonly #inAll: number
  #minute = Number.NaN
  #written = 0
  #omitted = 0
  // Holds no more keys than lines are written in a minute.
  readonly #byKey = new Map<string, number>()

  constructor({ perKey, inAll }: { readonly perKey: number; readonly inAll: number }) {
    this.#perKey = perKey
    this.#inAll = inAll
  }

  /** Writes the line, or counts it as omitted. */
  readonly write = (key: string, line: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const current = Math.floor(now / minute)
      if (current !== this.#minute) {
        this.#minute = current
        this.#written = 0
        this.#byKey.clear()
      }
      const before = this.#byKey.get(key) ?? 0
      if (before >= this.#perKey || this.#written >= this.#inAll) {
        this.#omitted += 1
        return Effect.void
      }
      this.#byKey.set(key, before + 1)
      this.#written += 1
      const omitted = this.#omitted
      this.#omitted = 0
      return omitted === 0 ? line : Effect.annotateLogs(line, { omitted })
    })
}
