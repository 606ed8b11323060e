/**
 * Logs blooms of blocks and receipts: whether a bloom promises a log that a filter asks for, by which `readRange.ts`
 * notices omitted logs; and whether logs explain a whole bloom, by which `oversizedBlock.ts` knows that none is.
 */
import { Predicate } from "effect"
import { type Hex, hexToBytes, keccak256 } from "viem"
import type { LogFilter } from "../rpc/methods.ts"

export const bloomBytes = 256
/** A bloom with a higher probability of a false positive is not worth another call. */
const maxFalsePositive = 0.02
/** Items in the cache of bits: the calls of one chain ask for the same ones repeatedly. */
const cachedItems = 4096

const countBits = (bloom: Uint8Array): number => {
  let set = 0
  for (const byte of bloom) for (let rest = byte; rest > 0; rest &= rest - 1) set++
  return set
}

/**
 * The probability that a bloom with `bits` bits set matches one of `alternatives` items that were never added to it.
 * The other parts of the filter are assumed to match: nearly every block has a transfer of a well-known token.
 */
const falsePositive = (bits: number, alternatives: number) => 1 - (1 - (bits / (8 * bloomBytes)) ** 3) ** alternatives

// Three bits an item: the low eleven bits of the first three pairs of bytes of its hash, counted from the bloom's end
// (yellow paper, M_3:2048).
const bitsOf = (item: string): ReadonlyArray<number> => {
  const hash = hexToBytes(keccak256(item as Hex))
  return [0, 2, 4].map((at) => (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 2047)
}

const known = new Map<string, ReadonlyArray<number>>()
const knownBitsOf = (item: string): ReadonlyArray<number> => {
  const bits = known.get(item) ?? bitsOf(item)
  if (known.size >= cachedItems) known.clear()
  known.set(item, bits)
  return bits
}

const mayHold = (bloom: Uint8Array, item: string): boolean =>
  knownBitsOf(item).every((bit) => ((bloom[bloomBytes - 1 - (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0)

/**
 * Whether a block's bloom promises a log that matches the filter: then a response without one is doubtful. There are no
 * false negatives. Where a false positive is likely, since the bloom is full or the filter has many items, it is false.
 *
 * @param logsBloom 256 bytes, hexadecimal
 */
export const mayContain = (logsBloom: string, { address, topics }: LogFilter): boolean => {
  const bloom = hexToBytes(logsBloom as Hex)
  const alternatives = [address, ...topics.flatMap((topic) => (topic === null ? [] : [[topic].flat()]))]
  const most = Math.max(...alternatives.map(({ length }) => length))
  if (falsePositive(countBits(bloom), most) > maxFalsePositive) return false
  return alternatives.every((items) => items.some((item) => mayHold(bloom, item)))
}

/** An address or a topic. */
const isItem = (item: unknown): item is string =>
  typeof item === "string" && /^0x(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})$/.test(item)

/** Sets the bits of logs (their addresses and topics) in a bloom. Malformed logs set none. */
export const addLogs = (bloom: Uint8Array, logs: ReadonlyArray<unknown>): void => {
  for (const log of logs) {
    if (!Predicate.isRecord(log)) continue
    const items: ReadonlyArray<unknown> = [log.address, ...(Array.isArray(log.topics) ? log.topics : [])]
    for (const bit of items.filter(isItem).flatMap(knownBitsOf)) {
      const at = bloomBytes - 1 - (bit >> 3)
      bloom[at] = (bloom[at] ?? 0) | (1 << (bit & 7))
    }
  }
}

/**
 * Whether all bits of a block's or a receipt's bloom are in `bits`; otherwise logs are missing.
 *
 * @param logsBloom 256 bytes, hexadecimal
 */
export const isWithin = (logsBloom: string, bits: Uint8Array): boolean =>
  hexToBytes(logsBloom as Hex).every((byte, i) => (byte & ~(bits[i] ?? 0)) === 0)
