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

describe("Span", () => {
  it("starts with the largest, and never passes it", () => {
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

  it("grows by an eighth with each part that had the size allowed", () => {
    const span = new BlockRange()
    span.failed(error("timeout"))
    expect(read(span, 3)).toEqual([56, 63, 70])
    span.succeeded(69)
    expect(span.blocks).toBe(70)
    read(span, 10)
    expect(span.blocks).toBe(100)
  })

  it("takes the limit that is named", () => {
    const span = new BlockRange(2000)
    span.failed(error("range", 500))
    expect(span.blocks).toBe(500)
    expect(new Set(read(span, 60))).toEqual(new Set([500]))
  })

  it("goes back to a limit that is named, and no further, after another error", () => {
    const span = new BlockRange(2000)
    span.failed(error("range", 500))
    span.failed(error("timeout"))
    expect(span.blocks).toBe(250)
    read(span, 7)
    expect(span.blocks).toBe(500)
  })

  it("halves when the limit that is named was kept", () => {
    const span = new BlockRange(2000)
    span.failed(error("range", 10_000))
    expect(span.blocks).toBe(1000)
    span.failed(error("range", 1000))
    expect(span.blocks).toBe(500)
  })

  it("tries a little more than the limit now and then, and falls back when it still holds", () => {
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

  it("passes a limit step by step when it is gone", () => {
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

  it("takes what is suggested for one part, and keeps it as no limit", () => {
    const span = new BlockRange(2000)
    span.failed(
      new RpcError({ host: "model", method: "eth_getLogs", reason: "range", detail: "", suggestedBlocks: 36 })
    )
    expect(span.blocks).toBe(36)
    expect(read(span, 60).at(-1)).toBe(2000)
  })

  it("halves the part that was refused, whatever was allowed, and what was allowed where none came", () => {
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
