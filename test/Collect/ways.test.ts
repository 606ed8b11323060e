import { expect } from "@effect/vitest"
import type { Address } from "viem"
import { liveTest } from "../lib/scopedTest.ts"
import { collecting, ether, funded, prepared, refundOf, usd } from "./collecting.ts"

liveTest("moves USDC from a hundred addresses in one transaction, and from more in two", function* () {
  const { plan, scene, signed } = yield* prepared([["USDC", 103, 20n * usd]])
  expect(new Set(plan.moves.map(({ way }) => way))).toEqual(new Set(["authorization"]))
  expect([signed.authorizations.length, signed.transactions.length]).toEqual([103, 2])
  yield* scene.mining
  const { totals, transfers } = yield* scene.sent(signed)
  const hashes = transfers.map(({ hash }) => hash)
  expect([hashes.length, new Set(hashes).size, new Set(hashes.slice(0, 100)).size]).toEqual([103, 2, 1])
  expect(yield* scene.arrived("USDC")).toBe(2_060n * usd)
  expect(totals.find(({ currency }) => currency === "USDC")).toMatchObject({
    ...{ before: `${2_060n * usd}`, received: `${2_060n * usd}`, stayed: "0" }
  })
})

liveTest("brings gas for tokens without authorizations, also for one that returns nothing", function* () {
  const scene = yield* funded(
    [
      ["USDT", 3, 20n * usd],
      ["DAI", 2, 30n * ether, 3],
      // This one has gas of its own.
      ["ETH", 1, ether / 100n, 4]
    ],
    { chain: "base" }
  )
  const { plan, signed } = yield* scene.planned({ received: scene.received(5), currencies: ["USDT", "DAI"] })
  expect(plan.moves.map(({ way }) => way)).toEqual(Array.from({ length: 5 }, () => "token"))
  expect(plan.moves.map(({ funding }) => funding === "0")).toEqual([false, false, false, false, true])
  expect(signed.transactions).toHaveLength(9)
  yield* scene.mining
  yield* scene.sent(signed)
  expect(yield* scene.arrived("USDT")).toBe(60n * usd)
  expect(yield* scene.arrived("DAI")).toBe(60n * ether)
})

liveTest("sends coin less its gas, and what is left after the transfers of tokens", function* () {
  const scene = yield* collecting()
  yield* scene.pay("ETH", 3, ether)
  yield* scene.pay("USDT", 1, 20n * usd)
  const { plan, signed } = yield* scene.planned({ received: scene.received(3) })
  expect(plan.moves.map(({ way }) => way)).toEqual(["token", "native", "native", "native"])
  expect(plan.sponsor.needsWei).toBe("0")
  yield* scene.mining
  const { totals } = yield* scene.sent(signed)
  const coin = totals.find(({ currency }) => currency === "ETH")
  expect(`${yield* scene.arrived("ETH")}`).toBe(coin?.received)
  expect(BigInt(coin?.before ?? 0)).toBe(3n * ether)
})

liveTest("sends coin back whole where the address has no more: its gas is the sponsor's", function* () {
  const scene = yield* funded([["ETH", 1, ether]])
  const refunds = [refundOf(scene, 1, { currency: "ETH", amount: ether })]
  const { signed } = yield* scene.planned({ refunds })
  yield* scene.mining
  yield* scene.sent(signed)
  expect(yield* scene.arrived("ETH")).toBe(ether)
})

liveTest("takes no gas of a refund out of the coin at its address", function* () {
  const scene = yield* funded([
    ["ETH", 1, ether + ether / 50n],
    ["USDT", 1, 20n * usd]
  ])
  const address = scene.wallet.address(0) as Address
  yield* scene.local.mine(2)
  const refunds = [
    refundOf(scene, 1, { currency: "USDT", amount: 20n * usd, kept: 0n }),
    refundOf(scene, 2, { currency: "ETH", amount: ether / 50n, kept: ether })
  ]
  const { signed } = yield* scene.planned({ refunds })
  yield* scene.mining
  const { transfers } = yield* scene.sent(signed)
  expect(transfers).toHaveLength(2)
  expect(yield* scene.local.balance(address)).toBeGreaterThanOrEqual(ether)
  expect([yield* scene.arrived("ETH"), yield* scene.arrived("USDT")]).toEqual([ether / 50n, 20n * usd])
})

liveTest("leaves room on an OP-stack chain for the fee of the data, with its margin, in live mode too", function* () {
  const scene = yield* funded([["ETH", 1, ether]], { chain: "optimism", mode: "live" })
  const dataFee = 2n * 10n ** 13n
  // A contract that returns this number, whatever it is asked: PUSH32 n, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN.
  const code = `0x7f${dataFee.toString(16).padStart(64, "0")}60005260206000f3`
  yield* scene.local.rpc("anvil_setCode", ["0x420000000000000000000000000000000000000F", code])
  const { plan, signed } = yield* scene.planned({ received: scene.received(1) })
  expect(plan).toMatchObject({ mode: "live", dataFees: { single: `${(dataFee * 3n) / 2n}` } })
  const [move] = plan.moves
  const highest = BigInt(plan.fees.at(-1)?.most ?? 0)
  expect(BigInt(move?.amount ?? 0)).toBe(ether - BigInt(move?.gas ?? 0) * highest - (dataFee * 3n) / 2n)
  yield* scene.mining
  yield* scene.sent(signed)
})
