import { Clock, Effect } from "effect"
import { Windows } from "../lib/Windows.ts"

/**
 * Rate limits log lines that others can cause: a dead receiver, a client that guesses keys, a slow disk. Limits apply
 * per key and minute, and to all keys; a line's `omitted` counts the lines dropped before it.
 */
export class LogLimit {
  readonly #windows = new Windows(60_000)
  readonly #perKey: number
  readonly #inAll: number
  #omitted = 0

  constructor({ perKey, inAll }: { readonly perKey: number; readonly inAll: number }) {
    this.#perKey = perKey
    this.#inAll = inAll
  }

  /** Writes the line, or counts it as omitted. */
  readonly write = (key: string, line: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const limits = [[`of ${key}`, this.#perKey] as const, ["all", this.#inAll] as const]
      if (!this.#windows.take(limits, now)) {
        this.#omitted += 1
        return Effect.void
      }
      const omitted = this.#omitted
      this.#omitted = 0
      return omitted === 0 ? line : Effect.annotateLogs(line, { omitted })
    })
}
