/**
 * A set of addresses in hexadecimal of either case. A look-up takes the offset of an address's first digit, so that a
 * log's topic is looked up as it is. The zero address is never in the set.
 */
export class AddressSet {
  /** Lower case. */
  readonly #addresses = new Set<string>()

  get size(): number {
    return this.#addresses.size
  }

  /** Whether the address is in the set. `offset`: of its first digit in `text`. */
  has(text: string, offset = 2): boolean {
    return this.#addresses.has(`0x${text.slice(offset, offset + 40)}`.toLowerCase())
  }

  /** True when the address was not in the set. Throws when it is not an address, which is a defect of the caller's. */
  add(text: string): boolean {
    if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new Error(`not an address: ${text.slice(0, 60)}`)
    if (/^0x0{40}$/.test(text) || this.has(text)) return false
    this.#addresses.add(text.toLowerCase())
    return true
  }

  /** True when the address was in the set. */
  delete(text: string): boolean {
    return this.#addresses.delete(text.toLowerCase())
  }

  /** Lower case, in no order. */
  [Symbol.iterator](): Iterator<string> {
    return this.#addresses.values()
  }
}
