import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { type Hex, hexToNumber, keccak256 } from "viem"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { root, start } from "../lib/tilld.ts"
import { holdsExactly, someone, usd } from "./collecting.ts"
import { inFrontOf } from "./inFront.ts"
import { openShop } from "./shop.ts"

/** Bytes that take one line about a transaction, and not two. */
const oneLine = 200

interface Line {
  readonly event: string
  readonly hash?: string
}

liveTest("sends nothing that its journal cannot take, and ends to the unit once there is room", function* () {
  let journal = ""
  const written = () => (existsSync(journal) ? readFileSync(journal, "utf8") : "")
  const lines = () =>
    written()
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line)
  const sent = new Set<string>()
  const notNoted: Array<string> = []
  const front = (url: string) =>
    inFrontOf(url, ({ method, params: [raw] }, result) => {
      if (method !== "eth_sendRawTransaction") return result
      const hash = keccak256(raw as Hex)
      sent.add(hash)
      if (!lines().some((line) => line.event === "sending" && line.hash === hash)) notNoted.push(hash)
      return result
    })
  const { broadcast, broadcasting, chain, file, paid, plan, sign, sponsor } = yield* openShop({ front })
  const [, , { address: source }] = yield* Effect.all(
    [paid("USDC", 25n * usd), paid("USDC", 30n * usd), paid("USDT", 40n * usd)],
    { concurrency: "unbounded" }
  )
  const destination = someone()
  yield* plan("plan", "--to", destination)
  yield* sign("plan")
  journal = file("plan.signed.journal")
  const nonces = Effect.forEach(
    [sponsor, source],
    (address) => Effect.map(chain.rpc<Hex>("eth_getTransactionCount", [address, "pending"]), hexToNumber),
    { concurrency: 1 }
  )

  /** A broadcast whose journal can become longer by so many bytes, and no file longer than that. */
  const sendWithin = Effect.fnUntraced(function* (room: number) {
    const limited = [`--fsize=${written().length + room}:`, process.execPath, join(root, "dist/tilld.js")]
    const { ended } = yield* start("prlimit", [...limited, ...broadcasting("plan"), "--json"])
    const { code, signal, stderr, stdout } = yield* ended
    if (code === 0) return stdout
    expect([code, signal, stdout]).toEqual([1, null, ""])
    expect(stderr).toContain(`${journal} could not be written (Error: EFBIG: file too large, write)`)
    expect(stderr).toContain("what was sent is under way. Make room, and run this again.")
    // A line is there whole, or not at all.
    expect(written()).toMatch(/^$|\n$/)
    return undefined
  }, Effect.scoped)

  yield* sendWithin(oneLine)
  expect([written(), [...sent], yield* nonces]).toEqual(["", [], [0, 0]])
  // The line that says what was there before is longer than others.
  for (let room = 2 * oneLine; written() === ""; room += oneLine) yield* sendWithin(room)
  let done = yield* sendWithin(oneLine)
  let refusedUnderWay = 0
  for (let count = 2; done === undefined; count += Math.ceil(count / 3)) {
    done = yield* sendWithin(count * oneLine)
    if (done === undefined && sent.size > 0) refusedUnderWay += 1
  }
  expect(refusedUnderWay).toBeGreaterThan(1)

  const result = JSON.parse(done) as SweepResult
  expect(result.differences).toEqual([])
  expect(holdsExactly(result)).toBe(true)
  expect(yield* chain.tokenBalance("USDC", destination)).toBe(55n * usd)
  expect(yield* chain.tokenBalance("USDT", destination)).toBe(40n * usd)
  expect(notNoted).toEqual([])
  // The sponsor's batch and funding, and the transfer that it pays for.
  expect([sent.size, yield* nonces]).toEqual([3, [2, 1]])
  const again = yield* broadcast("plan")
  expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining("It was sent before") })
  expect(JSON.parse(again.stdout)).toEqual(result)
})
