/** The part of the free bytes that one client may take. */
const share = 1 / 8

/**
 * Room for bytes: of request bodies, which are kept until the requests have their replies, or of replies that have not been
 * taken. One client may take an eighth of what is still free: however many do, there is room for another one. The client is
 * the sender of a request, not the proxy that it came through.
 */
export class Room {
  #free: number
  readonly #kept = new Map<string, number>()

  /** @param bytes for all clients together */
  constructor(bytes: number) {
    this.#free = bytes
  }

  /** Takes room for bytes of a client; false when there is none for them. */
  take(client: string, bytes: number): boolean {
    const kept = (this.#kept.get(client) ?? 0) + bytes
    if (kept > this.#free * share) return false
    this.#free -= bytes
    this.#kept.set(client, kept)
    return true
  }

  /** Gives back room that was taken. */
  giveBack(client: string, bytes: number): void {
    const kept = (this.#kept.get(client) ?? 0) - bytes
    this.#free += bytes
    if (kept > 0) this.#kept.set(client, kept)
    else this.#kept.delete(client)
  }
}
