import { describe, expect, it } from "vitest"
import { BlockRange } from "../../../src/Chains/providers/BlockRange.ts"
import { RpcError, type RpcReason } from "../../../src/Chains/rpc/RpcError.ts"

const error = (reason: RpcReason, maxBlocks?: number) =>
  new RpcError({ host: "model", method: "eth_getLogs", reason, detail: "", maxBlocks })

/** Parts of the allowed size that go well. */
const read = (span: BlockRange, parts: number): ReadonlyArray<number> =>
  Array.from({ length: parts }, () => {
    span.succeeded(span.blocks)
    return span.blocks
  })

describe("BlockRange", () => {
  it("starts with the largest, and never exceeds it", () => {
    expect(new BlockRange().blocks).toBe(100)
    const span = new BlockRange(2000)
    read(span, 500)
    expect(span.blocks).toBe(2000)
  })

  it.each<RpcReason>(["timeout", "http", "too_large", "range", "refused"])("halves after %s", (reason) => {
    const span = new BlockRange()
    span.failed(error(reason))
    expect(span.blocks).toBe(50)
    for (let i = 0; i < 20; i++) span.failed(error(reason))
    expect(span.blocks).toBe(1)
  })

  it.each<RpcReason>([
    "unreachable",
    "rate_limited",
    "state",
    "unsupported",
    "missing",
    "behind",
    "inconsistent",
    "garbage"
  ])("does not change after %s", (reason) => {
    const span = new BlockRange()
    span.failed(error(reason, 10))
    expect(span.blocks).toBe(100)
  })

  it("grows by an eighth with each successful range of the full size", () => {
    const span = new BlockRange()
    span.failed(error("timeout"))
    expect(read(span, 3)).toEqual([56, 63, 70])
    span.succeeded(69)
    expect(span.blocks).toBe(70)
    read(span, 10)
    expect(span.blocks).toBe(100)
  })

  it("takes the limit that the provider names", () => {
    const span = new BlockRange(2000)
    span.failed(error("range", 500))
    expect(span.blocks).toBe(500)
    expect(new Set(read(span, 60))).toEqual(new Set([500]))
  })

  it("falls back to a named limit, and no further, after another error", () => {
    const span = new BlockRange(2000)
    span.failed(error("range", 500))
    span.failed(error("timeout"))
    expect(span.blocks).toBe(250)
    read(span, 7)
    expect(span.blocks).toBe(500)
  })

  it("halves when a range within the named limit is refused", () => {
    const span = new BlockRange(2000)
    span.failed(error("range", 10_000))
    expect(span.blocks).toBe(1000)
    span.failed(error("range", 1000))
    expect(span.blocks).toBe(500)
  })

  it("exceeds the limit a little now and then, and falls back when it still holds", () => {
    const span = new BlockRange(2000)
    span.failed(error("range", 500))
    expect(read(span, 63).at(-1)).toBe(500)
    expect(read(span, 1)).toEqual([562])
    span.failed(error("range", 500))
    expect(span.blocks).toBe(500)
    // Not at once again.
    expect(read(span, 63).at(-1)).toBe(500)
    read(span, 1)
    span.failed(error("timeout"))
    expect(span.blocks).toBe(500)
  })

  it("grows step by step when the limit is gone", () => {
    const span = new BlockRange(2000)
    span.failed(error("range", 1000))
    read(span, 64)
    expect(span.blocks).toBe(1125)
    expect(read(span, 64).at(-1)).toBe(1265)
    span.failed(error("refused"))
    expect(span.blocks).toBe(1125)
    read(span, 10_000)
    expect(span.blocks).toBe(2000)
  })

  it("takes a suggested range once, and does not keep it as a limit", () => {
    const span = new BlockRange(2000)
    span.failed(
      new RpcError({ host: "model", method: "eth_getLogs", reason: "range", detail: "", suggestedBlocks: 36 })
    )
    expect(span.blocks).toBe(36)
    expect(read(span, 60).at(-1)).toBe(2000)
  })

  it("halves the refused range, and the allowed one after a timeout", () => {
    const refused = new BlockRange(2000)
    refused.failed(error("range"), 6)
    expect(refused.blocks).toBe(3)
    const silent = new BlockRange(2000)
    silent.failed(error("timeout"), 6)
    expect(silent.blocks).toBe(1000)
  })

  it("is stuck while a single block fails", () => {
    const span = new BlockRange()
    expect(span.stuck).toBe(false)
    span.failed(error("timeout"), 1)
    expect(span.stuck).toBe(true)
    span.failed(error("unreachable"), 1)
    expect(span.stuck).toBe(true)
    span.succeeded(1)
    expect(span.stuck).toBe(false)
  })

  it("takes a lower limit when one is named later", () => {
    const span = new BlockRange(2000)
    span.failed(error("range", 1000))
    read(span, 64)
    span.failed(error("range", 100))
    expect(span.blocks).toBe(100)
    expect(read(span, 50).at(-1)).toBe(100)
  })
})
