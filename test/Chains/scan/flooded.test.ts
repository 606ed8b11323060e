import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { WatchedAddresses } from "../../../src/Chains/ledger/WatchedAddresses.ts"
import { rescan } from "../../../src/Chains/repair/rescan.ts"
import { Chains } from "../../../src/Chains.ts"
import { Reader } from "../../../src/Sql.ts"
import { change } from "../../lib/rows.ts"
import { address, alice, around, aroundTwo, health, second, upTo, usdc, watchedPayment } from "../around.ts"
import { capped, cut, ModelChain, token } from "../ModelChain.ts"
import { ledger, until } from "../world.ts"

/** A payment to alice, beside so many watched addresses that all transfers are looked at. */
const watchMany = Effect.gen(function* () {
  const matchSet = yield* WatchedAddresses
  for (let i = 1; i <= 1_200; i++) matchSet.add("test", `0x${(0xf000_0000 + i).toString(16).padStart(40, "0")}`)
  yield* watchedPayment(alice)
})

/** A block with more transfers than a response may have, the last of them to alice, and some blocks around it. */
const mineFlood = (chain: ModelChain) => {
  chain.mineMany(5)
  chain.mine(...Array.from({ length: 1_500 }, () => token(usdc, address(0xbad), 1n)), token(usdc, alice, 5n))
  chain.mineMany(5)
}

/** A node whose cap is below what alice alone gets, and that serves no receipts of blocks. */
const stingy = (chain: ModelChain) => {
  chain.logCap = capped(10)
  chain.unserved.add("eth_getBlockReceipts").add("eth_getBlockByHash")
}
const dust = Array.from({ length: 12 }, () => token(usdc, alice, 1n))

const amounts = Effect.map(ledger, (rows) =>
  rows.filter(({ canonical }) => canonical === 1).map(({ amount }) => amount)
)
const forgotten = change("DELETE FROM receipts")
/** Lets seconds pass until this is there. */
const meanwhile = <A, E, R>(what: Effect.Effect<A, E, R>) => Effect.raceFirst(what, Effect.forever(second))

describe("a block with more logs than a provider gives at once", () => {
  it.scoped("is read by the tick, and by a rescan", () => {
    const chain = new ModelChain(10)
    chain.logCap = capped(1_000)
    return Effect.gen(function* () {
      yield* watchMany
      mineFlood(chain)
      yield* meanwhile(upTo(21))
      expect(yield* amounts).toEqual(["5"])
      // What is mined from then on is read in one part again: growth is slow, and never ends at a block a call.
      chain.mineMany(6)
      yield* meanwhile(upTo(27))
      chain.batches.length = 0
      chain.mineMany(2)
      yield* meanwhile(upTo(29))
      expect(chain.count("eth_getLogs")).toBe(1)
      yield* forgotten
      const { exclusively } = yield* Chains
      const done = yield* rescan(exclusively({ chain: "ethereum", mode: "test" }), { from: 1 }, "1 minute")
      expect(done).toMatchObject({ through: 29, receipts: 1, added: 1 })
      expect(yield* amounts).toEqual(["5"])
    }).pipe(around(chain))
  })

  it.scoped("is read by the verification pass", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      yield* watchMany
      mineFlood(first)
      yield* meanwhile(upTo(21))
      yield* forgotten
      for (const node of [first, other]) node.logCap = cut(1_000)
      first.mineMany(30)
      yield* meanwhile(upTo(51))
      const reader = yield* Reader
      const verified = reader.get<{ verified_number: number }>("SELECT verified_number FROM scans")
      yield* meanwhile(until(verified, (scan) => scan?.verified_number === 39))
      expect(yield* amounts).toEqual(["5"])
      expect((yield* health)?.providers.every(({ healthy }) => healthy)).toBe(true)
    }).pipe(aroundTwo(first, other))
  })

  it.scoped("is read from another provider at once when one refuses every way", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    stingy(first)
    return Effect.gen(function* () {
      yield* watchMany
      first.mineMany(5)
      first.mine(...dust)
      first.mineMany(5)
      yield* second
      // In no more time than that.
      yield* upTo(21)
      expect((yield* amounts).length).toBe(12)
      expect(first.count("eth_getBlockByHash")).toBeGreaterThan(0)
    }).pipe(aroundTwo(first, other))
  })

  it.scoped("holds up the scan, and health names it, when every provider refuses it", () => {
    const chain = new ModelChain(10)
    stingy(chain)
    return Effect.gen(function* () {
      yield* watchMany
      chain.mineMany(5)
      chain.mine(...dust)
      chain.mineMany(5)
      yield* second
      const reason = "every way to read the logs of block 16 at model failed (refused). Remedy: "
      yield* meanwhile(until(health, (now) => now?.reason?.startsWith(reason) === true))
      expect(yield* health).toMatchObject({ head: 15, lagBlocks: 6 })
      expect(yield* amounts).toEqual([])
      // Nothing was skipped: it goes on where it stopped.
      chain.logCap = undefined
      yield* meanwhile(upTo(21))
      expect((yield* amounts).length).toBe(12)
    }).pipe(around(chain))
  })
})
