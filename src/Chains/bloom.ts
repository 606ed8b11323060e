import { type Hex, hexToBytes, keccak256 } from "viem"
import type { LogFilter } from "./calls.ts"

const bloomBytes = 256
/** A bloom with more of its 2,048 bits set says yes to nearly everything: no answer can be held against it. */
const saturated = 1024

const countBits = (bloom: Uint8Array): number => {
  let set = 0
  for (const byte of bloom) for (let rest = byte; rest > 0; rest &= rest - 1) set++
  return set
}

// Three bits an item: the low eleven bits of the first three pairs of bytes of its hash, counted from the bloom's end
// (yellow paper, M_3:2048).
const mayHold = (bloom: Uint8Array, item: string): boolean => {
  const hash = hexToBytes(keccak256(item as Hex))
  return [0, 2, 4].every((at) => {
    const bit = (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 2047
    return ((bloom[bloomBytes - 1 - (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0
  })
}

/**
 * Whether a block's bloom speaks for a log that the filter asks for: then an answer without one is to be doubted. A
 * bloom never hides a log, but it can promise one that is not there; of one that promises nearly everything this is false.
 *
 * @param logsBloom 256 bytes, hexadecimal
 */
export const promises = (logsBloom: string, { address, topics }: LogFilter): boolean => {
  const bloom = hexToBytes(logsBloom as Hex)
  if (countBits(bloom) > saturated) return false
  const alternatives = [address, ...topics.flatMap((topic) => (topic === null ? [] : [[topic].flat()]))]
  return alternatives.every((items) => items.some((item) => mayHold(bloom, item)))
}
