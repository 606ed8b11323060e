import { expect, it } from "vitest"
import { BlockRange } from "../../../src/Chains/providers/BlockRange.ts"
import { RpcError, type RpcReason } from "../../../src/Chains/rpc/RpcError.ts"

type Step = (range: BlockRange) => void

/** The range that was tried, of so many blocks, failed, and the error named a limit or suggested a range. */
const failed =
  (
    reason: RpcReason,
    { tried, ...named }: { maxBlocks?: number; suggestedBlocks?: number; tried?: number } = {}
  ): Step =>
  (range) =>
    range.failed(new RpcError({ host: "model", method: "eth_getLogs", reason, detail: "", ...named }), tried)

/** So many ranges of the allowed size succeeded. */
const read =
  (times: number): Step =>
  (range) => {
    for (let i = 0; i < times; i++) range.succeeded(range.blocks)
  }

const readOf =
  (blocks: number): Step =>
  (range) =>
    range.succeeded(blocks)

/** What happens to a range of 2,000 blocks, and its size after each step. */
const scenarios: ReadonlyArray<readonly [string, ReadonlyArray<readonly [Step, blocks: number]>]> = [
  ["never exceeds the largest", [[read(500), 2000]]],
  [
    "grows by an eighth with each successful range of the full size",
    [
      [failed("timeout"), 1000],
      [read(1), 1125],
      [read(1), 1265],
      [readOf(1264), 1265],
      [read(10), 2000]
    ]
  ],
  [
    "takes the limit that the provider names, and a lower one later",
    [
      [failed("range", { maxBlocks: 500 }), 500],
      [read(60), 500],
      [failed("range", { maxBlocks: 100 }), 100],
      [read(3), 100]
    ]
  ],
  [
    "returns to a named limit after another error, and no further",
    [
      [failed("range", { maxBlocks: 500 }), 500],
      [failed("timeout"), 250],
      [read(7), 500],
      [read(1), 500]
    ]
  ],
  [
    "halves when a range within the named limit is refused",
    [
      [failed("range", { maxBlocks: 10_000 }), 1000],
      [failed("range", { maxBlocks: 1000 }), 500]
    ]
  ],
  [
    "exceeds the limit a little now and then, and falls back when it still holds",
    [
      [failed("range", { maxBlocks: 500 }), 500],
      [read(63), 500],
      [read(1), 562],
      [failed("range", { maxBlocks: 500 }), 500],
      // Not at once again.
      [read(63), 500],
      [read(1), 562],
      [failed("timeout"), 500]
    ]
  ],
  [
    "grows step by step when the limit is gone",
    [
      [failed("range", { maxBlocks: 1000 }), 1000],
      [read(64), 1125],
      [read(64), 1265],
      [failed("refused"), 1125],
      [read(10_000), 2000]
    ]
  ],
  [
    "takes a suggested range once, and does not keep it as a limit",
    [
      [failed("range", { suggestedBlocks: 36 }), 36],
      [read(60), 2000]
    ]
  ],
  ["halves the range that was refused", [[failed("range", { tried: 6 }), 3]]],
  ["halves the allowed range after a timeout", [[failed("timeout", { tried: 6 }), 1000]]]
]

it.each(scenarios)("a block range %s", (_, steps) => {
  const range = new BlockRange(2000)
  for (const [step, blocks] of steps) {
    step(range)
    expect(range.blocks).toBe(blocks)
  }
})

it.each<RpcReason>(["timeout", "http", "too_large", "range", "refused", "unsupported"])(
  "a block range halves after %s",
  (reason) => {
    const range = new BlockRange()
    failed(reason)(range)
    expect(range.blocks).toBe(50)
    for (let i = 0; i < 20; i++) failed(reason)(range)
    expect(range.blocks).toBe(1)
  }
)

const others = ["unreachable", "rate_limited", "state", "missing", "behind", "inconsistent", "garbage"]
it.each(others as ReadonlyArray<RpcReason>)("a block range does not change after %s", (reason) => {
  const range = new BlockRange()
  failed(reason, { maxBlocks: 10 })(range)
  expect(range.blocks).toBe(100)
})

it("a block range is stuck while a single block fails", () => {
  const range = new BlockRange()
  expect(range.stuck).toBe(false)
  failed("timeout", { tried: 1 })(range)
  expect(range.stuck).toBe(true)
  failed("unreachable", { tried: 1 })(range)
  expect(range.stuck).toBe(true)
  range.succeeded(1)
  expect(range.stuck).toBe(false)
})
