import { type Connection, close } from "./connection.ts"

/** How many connections are kept, over all receivers: the one that was used longest ago makes room. */
const capacity = 256

/** How long a connection is used: a receiver that moves to another address is followed after this time. */
const maxAgeMillis = 5 * 60_000

/** Connections that wait for their next request. undici closes each after its own keep-alive time. */
export class IdleConnections {
  readonly #byOrigin = new Map<string, Array<Connection>>()
  /** In the order in which they were last used. */
  readonly #all = new Set<Connection>()

  /** The one used last, which is the least likely to be closed by its receiver in this moment. */
  take(origin: string): Connection | undefined {
    const connection = this.#byOrigin.get(origin)?.at(-1)
    if (connection !== undefined) this.forget(connection)
    return connection
  }

  /** Keeps a connection that has nothing under way. `now` in Unix milliseconds. */
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

  /** It is closed, or no longer idle. */
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
