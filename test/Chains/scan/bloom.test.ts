import { type Hex, hexToBytes, keccak256, toHex } from "viem"
import { describe, expect, it } from "vitest"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { addLogs, bloomBytes, isWithin, mayContain } from "../../../src/Chains/scan/bloom.ts"
import { alice, usdc } from "../around.ts"

const topicOf = (address: string) => `0x${address.slice(2).toLowerCase().padStart(64, "0")}`
const bob = `0x${"b0b".padStart(40, "0")}`

/** A bloom of these items, as defined by the yellow paper: a number of 2,048 bits. */
const bloomOf = (...items: ReadonlyArray<string>): string => {
  let bloom = 0n
  for (const item of items) {
    const hash = hexToBytes(keccak256(item as Hex))
    for (const at of [0, 2, 4]) bloom |= 1n << BigInt(((hash[at] ?? 0) * 256 + (hash[at + 1] ?? 0)) % 2048)
  }
  return toHex(bloom, { size: 256 })
}

const filter = (...receivers: ReadonlyArray<string>) => ({
  address: [usdc],
  topics: [transferTopic, null, receivers.map(topicOf)]
})

describe("a block's bloom", () => {
  it("has no bits but those of its logs", () => {
    const bits = new Uint8Array(bloomBytes)
    const log = { address: usdc, topics: [transferTopic, topicOf(alice)] }
    addLogs(bits, [log, "no log", { address: "0x", topics: [7] }, { topics: undefined }])
    expect(toHex(bits)).toBe(bloomOf(usdc, transferTopic, topicOf(alice)))
    expect(isWithin(bloomOf(usdc, topicOf(alice)), bits)).toBe(true)
    expect(isWithin(bloomOf(usdc, topicOf(bob)), bits)).toBe(false)
    addLogs(bits, [{ ...log, topics: [topicOf(bob)] }])
    expect(isWithin(bloomOf(usdc, topicOf(bob), topicOf(alice)), bits)).toBe(true)
  })

  it("promises a log when it has the contract, the topic and one of the receivers", () => {
    const bloom = bloomOf(usdc, transferTopic, topicOf(alice))
    expect(mayContain(bloom, filter(bob, alice))).toBe(true)
    expect(mayContain(bloom, filter(bob))).toBe(false)
    expect(mayContain(bloomOf(transferTopic, topicOf(alice)), filter(alice))).toBe(false)
    expect(mayContain(bloomOf(usdc, topicOf(alice)), filter(alice))).toBe(false)
    expect(mayContain(bloom, { address: [usdc], topics: [transferTopic] })).toBe(true)
    expect(mayContain(toHex(0n, { size: 256 }), filter(alice))).toBe(false)
  })

  it("with nearly all bits set promises nothing", () => {
    expect(mayContain(`0x${"f".repeat(512)}`, filter(alice))).toBe(false)
  })

  it("promises nothing where a false positive is likely: the fuller it is, and the more receivers match", () => {
    const others = Array.from({ length: 120 }, (_, i) => `0x${(i + 1).toString(16).padStart(64, "e")}`)
    const bloom = bloomOf(usdc, transferTopic, topicOf(alice), ...others)
    const many = Array.from({ length: 499 }, (_, i) => `0x${(i + 1).toString(16).padStart(40, "d")}`)
    expect(mayContain(bloom, filter(alice))).toBe(true)
    expect(mayContain(bloom, filter(alice, ...many))).toBe(false)
    expect(mayContain(bloomOf(usdc, transferTopic, topicOf(alice)), filter(alice, ...many))).toBe(true)
  })
})
