/** 32-bit words of an address. */
const words = 5
const digitsPerWord = 8
const firstCapacity = 1024
/** A table at this load takes 25 bytes for each address, and 31 right after it has grown. */
const maxLoad = 0.8
const growth = 1.25

/** A hexadecimal digit's value; -1 of anything else. */
const digit = (code: number): number => {
  if (code >= 48 && code <= 57) return code - 48
  const lower = code | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}

/** Eight digits as an unsigned number; -1 when one of them is none. */
const wordAt = (text: string, at: number): number => {
  let word = 0
  for (let i = at; i < at + digitsPerWord; i++) {
    const value = digit(text.charCodeAt(i))
    if (value < 0) return -1
    word = (word << 4) | value
  }
  return word >>> 0
}

/**
 * A set of 20-byte addresses, packed in one table with open addressing: up to some 31 bytes an address, and a look-up
 * that makes no garbage. Addresses are given in hexadecimal of either case, with the offset of their first digit, so
 * that a log's topic is looked up as it stands. The zero address is never in the set.
 */
export class AddressSet {
  #slots = new Uint32Array(firstCapacity * words)
  #capacity = firstCapacity
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Bytes of the table. */
  get byteLength(): number {
    return this.#slots.byteLength
  }

  /** Whether the address is in the set. `offset`: of its first digit in `text`. */
  has(text: string, offset = 2): boolean {
    if (text.length < offset + 40) return false
    const last = wordAt(text, offset + 32)
    if (last < 0) return false
    // Addresses are hashes, so their last word is as good as any hash of them.
    for (let slot = last % this.#capacity; ; slot = slot + 1 === this.#capacity ? 0 : slot + 1) {
      if (this.#isEmpty(slot)) return false
      if (this.#slots[slot * words + 4] === last && this.#holds(slot, text, offset)) return true
    }
  }

  /** True when the address was not in the set. Throws when it is not an address, which is a defect of the caller's. */
  add(text: string): boolean {
    if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new Error(`not an address: ${text.slice(0, 60)}`)
    if (/^0x0{40}$/.test(text) || this.has(text)) return false
    if (this.#size + 1 > this.#capacity * maxLoad) this.#grow()
    const slot = this.#freeSlot(wordAt(text, 34))
    for (let i = 0; i < words; i++) this.#slots[slot * words + i] = wordAt(text, 2 + i * digitsPerWord)
    this.#size++
    return true
  }

  /** True when the address was in the set. */
  delete(text: string): boolean {
    if (!this.has(text)) return false
    let slot = wordAt(text, 34) % this.#capacity
    while (!this.#holds(slot, text, 2)) slot = (slot + 1) % this.#capacity
    this.#close(slot)
    this.#size--
    return true
  }

  /** Lower case, in no order. */
  *[Symbol.iterator](): Generator<string> {
    for (let slot = 0; slot < this.#capacity; slot++) {
      if (this.#isEmpty(slot)) continue
      const address = this.#slots.subarray(slot * words, (slot + 1) * words)
      yield `0x${Array.from(address, (word) => word.toString(16).padStart(digitsPerWord, "0")).join("")}`
    }
  }

  #isEmpty(slot: number): boolean {
    const at = slot * words
    // The last word alone decides, except for one address in 2^32.
    return (
      this.#slots[at + 4] === 0 &&
      this.#slots[at] === 0 &&
      this.#slots[at + 1] === 0 &&
      this.#slots[at + 2] === 0 &&
      this.#slots[at + 3] === 0
    )
  }

  #holds(slot: number, text: string, offset: number): boolean {
    for (let i = words - 1; i >= 0; i--) {
      if (this.#slots[slot * words + i] !== wordAt(text, offset + i * digitsPerWord)) return false
    }
    return true
  }

  #freeSlot(last: number): number {
    let slot = last % this.#capacity
    while (!this.#isEmpty(slot)) slot = (slot + 1) % this.#capacity
    return slot
  }

  #grow(): void {
    const old = this.#slots
    this.#capacity = Math.ceil(this.#capacity * growth)
    this.#slots = new Uint32Array(this.#capacity * words)
    for (let at = 0; at < old.length; at += words) {
      const address = old.subarray(at, at + words)
      if (address.every((word) => word === 0)) continue
      this.#slots.set(address, this.#freeSlot(address[4] ?? 0) * words)
    }
  }

  /** Empties a slot and moves up the addresses whose probe sequence passed it, so that no look-up ends too early. */
  #close(slot: number): void {
    let hole = slot
    let next = slot
    while (true) {
      next = (next + 1) % this.#capacity
      if (this.#isEmpty(next)) break
      const home = (this.#slots[next * words + 4] ?? 0) % this.#capacity
      // The address's distance from its home slot, and from the hole: it may move only if its probe sequence passed the
      // hole.
      const passed = (next - home + this.#capacity) % this.#capacity
      const back = (next - hole + this.#capacity) % this.#capacity
      if (passed < back) continue
      this.#slots.copyWithin(hole * words, next * words, (next + 1) * words)
      hole = next
    }
    this.#slots.fill(0, hole * words, (hole + 1) * words)
  }
}
