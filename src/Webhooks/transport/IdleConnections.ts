import { type Connection, close } from "./targetConnection.ts"

/** Idle connections to all receivers together. The least recently used one is closed to make room. */
const capacity = 256

/** How long a connection is reused. After this time a receiver that moved to another address is resolved again. */
const maxAgeMillis = 5 * 60_000

/** Idle connections by receiver. undici closes each after its own keep-alive time. */
export class IdleConnections {
  readonly #byOrigin = new Map<string, Array<Connection>>()
  /** Least recently used first. */
  readonly #all = new Set<Connection>()

  /** The connection used last: the least likely to be closed by its receiver just now. */
  take(origin: string): Connection | undefined {
    const connection = this.#byOrigin.get(origin)?.at(-1)
    if (connection !== undefined) this.forget(connection)
    return connection
  }

  /** Keeps a connection without a request under way. `now` in Unix milliseconds. */
  put(connection: Connection, now: number): void {
    if (now - connection.openedAt > maxAgeMillis) {
      close(connection)
      return
    }
    const [oldest] = this.#all.size < capacity ? [] : this.#all
    if (oldest !== undefined) {
      this.forget(oldest)
      close(oldest)
    }
    this.#all.add(connection)
    this.#byOrigin.set(connection.origin, [...(this.#byOrigin.get(connection.origin) ?? []), connection])
  }

  /** Removes a connection that is closed or no longer idle. */
  forget(connection: Connection): void {
    if (!this.#all.delete(connection)) return
    const siblings = (this.#byOrigin.get(connection.origin) ?? []).filter((sibling) => sibling !== connection)
    if (siblings.length > 0) this.#byOrigin.set(connection.origin, siblings)
    else this.#byOrigin.delete(connection.origin)
  }

  closeAll(): void {
    for (const connection of this.#all) close(connection)
    this.#all.clear()
    this.#byOrigin.clear()
  }
}
