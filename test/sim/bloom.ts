import { type Hex, keccak256 } from "viem"

const bytes = 256
const bitsOf = new Map<string, ReadonlyArray<number>>()

/** Three bits of 2,048 for an address or a topic: the low eleven bits of the first three 16-bit words of its hash. */
const bits = (item: string): ReadonlyArray<number> => {
  const known = bitsOf.get(item)
  if (known !== undefined) return known
  const hash = keccak256(item as Hex)
  const found = [2, 6, 10].map((at) => Number.parseInt(hash.slice(at, at + 4), 16) % 2048)
  bitsOf.set(item, found)
  return found
}

const none = `0x${"00".repeat(bytes)}`

/** A block's bloom over its logs' addresses and topics (yellow paper, 4.3.1): bit 0 is the lowest of the last byte. */
export const bloomOf = (items: ReadonlyArray<string>): string => {
  if (items.length === 0) return none
  const bloom = Buffer.alloc(bytes)
  for (const item of items) {
    for (const bit of bits(item))
      bloom[bytes - 1 - (bit >> 3)] = (bloom[bytes - 1 - (bit >> 3)] ?? 0) | (1 << (bit & 7))
  }
  return `0x${bloom.toString("hex")}`
}
