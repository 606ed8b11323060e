/** A broadcast without some of what was signed, or one that was ended on its way and goes on. */
import { existsSync, writeFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber } from "effect"
import type { Address } from "viem"
import { holdingKey } from "../../src/Chains/balances/holdings.ts"
import { accessTo } from "../../src/Chains/providers/chainAccess.ts"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import type { PayingMove } from "../../src/Collect/broadcast.ts"
import { type PlannedRefund, uncovered } from "../../src/Collect/candidates.ts"
import { collectRefusal } from "../../src/Collect/Plan.ts"
import { type Signed, signatureOf } from "../../src/Collect/Signed.ts"
import { authorizationsOf, authorizedCall } from "../../src/Collect/transactions.ts"
import { iso } from "../../src/lib/moment.ts"
import { liveTest } from "../lib/scopedTest.ts"
import {
  type Collecting,
  funded,
  prepared,
  refundId,
  refundOf,
  someone,
  untilSaid,
  untilTrue,
  usd
} from "./collecting.ts"
import { refusal } from "./refusal.ts"

/** Two addresses with USDT, whose gas the sponsor sends in two transactions. */
const twoFunded = prepared([["USDT", 2, 20n * usd]])

/** A refund in USDC, which the sponsor carries out, and two in USDT, whose gas it sends after that. */
const refunding = Effect.gen(function* () {
  const scene = yield* funded([
    ["USDC", 1, 20n * usd],
    ["USDT", 2, 30n * usd, 1]
  ])
  const refunds = ["USDC", "USDT", "USDT"].map((currency, index) => refundOf(scene, index, { currency, index }))
  return { scene, ...(yield* scene.planned({ refunds })) }
})

/** As it is left by what was ended before anything was sent. */
const onlyBegun = ({ scene, signed }: { readonly scene: Collecting; readonly signed: Signed }) =>
  Effect.gen(function* () {
    yield* scene.cutOff(signed, "transactions sent")
    yield* scene.local.rpc("anvil_dropAllTransactions")
    writeFileSync(scene.journalPath, `${scene.noted("begun")[0]}\n`)
  })

const asked = (...notOwed: ReadonlyArray<number>) =>
  Effect.succeed({
    notOwed: new Map(notOwed.map((name) => [refundId(name), `exc_${name} is closed`])),
    held: new Map()
  })
const askedAll = (unpaid: ReadonlyArray<PlannedRefund>) =>
  asked(...unpaid.map(({ of }) => Number(of.slice("exc_".length))))

liveTest("sends a batch without the refund whose money a reorg took", function* () {
  const scene = yield* funded([["USDC", 1, 20n * usd]])
  yield* scene.pay("USDC", 1, 6n * usd, 1)
  yield* scene.local.mine()
  const refunds = [refundOf(scene, 0), refundOf(scene, 1, { index: 1 })]
  const { plan, signed } = yield* scene.planned({ refunds })
  yield* scene.local.reorg(2)
  yield* scene.local.mine(3)
  yield* scene.mining
  const check = Effect.flatMap(accessTo(scene.settings(), plan), (access) => uncovered(access, refunds)).pipe(
    Effect.provide(Rpc.layer),
    Effect.orDie,
    Effect.map((notOwed) => ({ notOwed, held: new Map() }))
  )
  const { result } = yield* scene.send(signed, {}, () => check)
  expect(result.transfers.map(({ refund }) => refund)).toEqual([refundId(0)])
  expect(result.differences).toMatchObject([{ address: scene.wallet.address(1), why: "it was left out" }])
  expect(scene.said).toContainEqual(expect.stringMatching(/^exc_1 .*It is left out$/))
  expect(yield* scene.arrived("USDC")).toBe(5n * usd)
})

liveTest("sends the others of a batch and of a plan where one address has to keep what it has", function* () {
  const { scene, signed } = yield* prepared([
    ["USDC", 3, 20n * usd],
    ["USDT", 2, 30n * usd, 3]
  ])
  const sending = (...indexes: ReadonlyArray<number>) => {
    const held = indexes.map((index) => {
      const key = holdingKey(index < 3 ? "USDC" : "USDT", scene.wallet.address(index))
      return [key, { amount: 1n, why: `it is ${index}` }] as const
    })
    return scene.send(signed, {}, () => Effect.succeed({ notOwed: new Map(), held: new Map(held) }))
  }
  yield* scene.mining
  expect(yield* refusal(sending(0, 1, 2, 3, 4))).toBe("it is 0. Nothing was sent: make a new plan")
  expect(yield* refusal(sending(0, 1))).toContain("was not signed without just these")
  expect(existsSync(scene.journalPath)).toBe(false)
  const { result } = yield* sending(1, 3)
  expect(new Set(result.transfers.map(({ address }) => address))).toEqual(
    new Set([0, 2, 4].map((index) => scene.wallet.address(index)))
  )
  expect(result.differences.map(({ address, why }) => [address, why])).toEqual(
    [1, 3].map((index) => [scene.wallet.address(index), "it was left out"])
  )
  // The same account again.
  expect((yield* scene.send(signed)).result).toEqual(result)
})

liveTest("accounts for what was sent where something else has used the sponsor's next nonce", function* () {
  const { scene, signed } = yield* twoFunded
  yield* scene.cutOff(signed, "2 of 4 transactions sent")
  const second = scene.noted("sending").find((line) => line.includes('"place":2'))
  yield* scene.local.rpc("anvil_dropTransaction", [/0x[0-9a-f]{64}/.exec(second ?? "")?.[0]])
  yield* scene.sendFrom(scene.sponsor, { to: someone() })
  yield* scene.local.mine()
  yield* scene.mining
  const { result } = yield* scene.send(signed)
  expect(result.transfers).toMatchObject([{ address: scene.wallet.address(0), amount: `${20n * usd}` }])
  expect(result.differences).toMatchObject([
    { address: scene.wallet.address(1), amount: `${20n * usd}`, why: expect.stringContaining("was given up") },
    { address: scene.sponsor, currency: "ETH", why: "something else took it from there" }
  ])
  expect(yield* scene.arrived("USDT")).toBe(20n * usd)
})

liveTest("sends nothing before its refunds are recorded, and tells which go on", function* () {
  const { scene, signed } = yield* refunding
  const begun: Array<unknown> = []
  const beginning = (refunds: ReadonlyArray<PayingMove>, wasSent: boolean) => {
    begun.push([refunds.map(({ refund, way }) => [refund, way]), wasSent, scene.noted("sending").length])
    return begun.length === 1 ? collectRefusal("exc_1 was accepted") : Effect.void
  }
  const sending = (...notOwed: ReadonlyArray<number>) => scene.send(signed, {}, () => asked(...notOwed), beginning)
  expect(yield* refusal(sending())).toBe("exc_1 was accepted")
  expect([existsSync(scene.journalPath), yield* scene.sentBy(scene.sponsor)]).toEqual([false, 0])
  yield* scene.mining
  yield* sending(1)
  yield* sending(1)
  const [first, ...others] = [0, 1, 2].map((name) => [refundId(name), name === 0 ? "authorization" : "token"])
  expect(begun).toEqual([
    [[first, ...others], false, 0],
    [[first, others[1]], false, 0],
    [[first, others[1]], true, 4]
  ])
})

liveTest("sends no refund that is no longer owed, nor what would wait for its nonce", function* () {
  const all = yield* refunding
  const { scene, signed } = all
  yield* onlyBegun(all)
  yield* scene.mining
  const { result } = yield* scene.send(signed, {}, () => asked(0))
  expect(result.transfers).toEqual([])
  expect(result.differences.map(({ currency }) => currency)).toEqual(["USDC", "USDT", "USDT"])
  expect(yield* scene.sentBy(scene.sponsor)).toBe(0)
  // Its gas is sent, which keeps the sponsor's nonces in order, and the refund itself is not.
  const { result: second } = yield* scene.send(signed, {}, () => asked(1))
  expect(second.transfers.map(({ refund }) => refund)).toEqual([refundId(0), refundId(2)])
  expect(second.differences).toMatchObject([{ address: scene.wallet.address(1), currency: "USDT" }])
  expect([yield* scene.sentBy(scene.sponsor), yield* scene.sentBy(scene.wallet.address(1))]).toEqual([3, 0])
  yield* scene.sent(signed)
  expect(yield* scene.arrived("USDT")).toBe(10n * usd)
})

liveTest("counts a refund that is no longer owed where it was sent all the same", function* () {
  const { scene, signed } = yield* refunding
  yield* scene.cutOff(signed, "3 of 5 transactions sent")
  yield* scene.mining
  const { result } = yield* scene.send(signed, {}, (unpaid) =>
    Effect.zipRight(Effect.orDie(scene.local.mine(2)), askedAll(unpaid))
  )
  expect(result.transfers.map(({ refund }) => refund)).toContain(refundId(0))
  expect(yield* scene.arrived("USDC")).toBe(5n * usd)
})

liveTest("warns of what was sent and not made, and can be made still", function* () {
  const { scene, signed } = yield* refunding
  yield* scene.cutOff(signed, "3 of 5 transactions sent")
  yield* scene.local.rpc("anvil_dropAllTransactions")
  const whys = (...notOwed: ReadonlyArray<number>) =>
    Effect.map(
      scene.send(signed, {}, () => asked(...notOwed)),
      ({ result }) => [...result.differences.map(({ why }) => why), ...result.unsent]
    )
  const given = "it was not moved: its transaction failed, or was given up"
  const until = iso(signed.plan.validBefore * 1000)
  expect(yield* whys(0, 1, 2)).toEqual([
    `${given}; it was sent, and may still be made until ${until}: do not pay it otherwise before`,
    given,
    given,
    // What may be made still is not over.
    refundId(1),
    refundId(2)
  ])
  scene.said.length = 0
  const second = yield* scene.sendUntil(signed, "3 of 5 transactions sent")
  yield* scene.local.mine()
  yield* untilSaid(scene, second, "5 of 5 transactions sent")
  yield* Fiber.interrupt(second)
  // Under way, which no other plan takes for nothing.
  const planned = scene.plan({ refunds: [refundOf(scene, 9, { currency: "USDT", index: 1 })] })
  expect(yield* refusal(planned)).toContain(`${scene.wallet.address(1)} has a transaction under way`)
  expect(yield* scene.refused(signed, { journalPath: `${scene.journalPath}.copy` })).toContain("Some of it was sent")
  yield* scene.local.rpc("anvil_dropAllTransactions")
  yield* scene.mining
  const warned = `${given}; it was sent, and may still be made: do not pay it otherwise before`
  expect(yield* whys(1, 2)).toEqual([warned, warned])
})

liveTest("sends no authorizations that have ended, and nothing after them", function* () {
  const all = yield* refunding
  const { scene, signed } = all
  yield* onlyBegun(all)
  yield* scene.local.rpc("evm_increaseTime", [24 * 3600])
  yield* scene.local.mine()
  yield* scene.mining
  const { result } = yield* scene.send(signed)
  expect(result.differences.map(({ currency }) => currency)).toEqual(["USDC", "USDT", "USDT"])
  expect(result.unsent).toEqual([0, 1, 2].map(refundId))
  expect(yield* scene.sentBy(scene.sponsor)).toBe(0)
})

liveTest("sends nothing that is withheld because one provider shows it for a while", function* () {
  const all = yield* refunding
  const { scene, signed } = all
  yield* onlyBegun(all)
  const shown = { blockHash: `0x${"fa".repeat(32)}`, blockNumber: "0x1", status: "0x1" }
  let lies = 0
  yield* scene.askThrough(({ method, params: [transactionHash] }, result) => {
    // Once its beginning was read.
    if (method !== "eth_getTransactionReceipt" || !scene.said.includes("begun again") || lies === 3) return result
    lies += 1
    return { ...shown, transactionHash }
  }, undefined)
  yield* scene.mining
  const { result } = yield* scene.send(signed, {}, (unpaid) => {
    scene.said.push("begun again")
    return askedAll(unpaid)
  })
  expect([lies, scene.said.some((text) => text.includes("it is no longer owed"))]).toEqual([3, true])
  expect(result.differences).toHaveLength(3)
  expect(yield* scene.sentBy(scene.sponsor)).toBe(0)
})

liveTest("checks a refund again that fell out of its block once it was confirmed", function* () {
  const scene = yield* funded([["USDT", 1, 20n * usd]])
  const { local } = scene
  const { signed } = yield* scene.planned({ refunds: [refundOf(scene, 0, { currency: "USDT" })] })
  // One more than is taken out: a block may come while that is done.
  const { number } = yield* local.head
  yield* local.mine(2)
  const mining = yield* Effect.forkScoped(Effect.forever(Effect.delay(local.mine(), "100 millis")))
  yield* scene.sent(signed)
  yield* Fiber.interrupt(mining)
  yield* local.reorg((yield* local.head).number - number)
  // As a broadcast leaves it that was ended once it had seen this.
  const lines = scene.noted().filter((line) => !line.startsWith('{"event":"finished"'))
  const fellOut = scene.noted("confirmed")
  expect(fellOut).toHaveLength(2)
  const added = fellOut.map((line) => line.replace("confirmed", "fell out"))
  writeFileSync(scene.journalPath, `${[...lines, ...added].join("\n")}\n`)
  const closed = (unpaid: ReadonlyArray<PlannedRefund>) => collectRefusal(`closed: ${unpaid.map(({ of }) => of)}`)
  expect(yield* refusal(scene.send(signed, {}, closed))).toBe("closed: exc_0")
})

liveTest("adds up where a reorg takes back what somebody else had carried out before", function* () {
  const { plan, scene, signed } = yield* prepared([["USDC", 1, 20n * usd]])
  const [one = expect.fail()] = authorizationsOf(plan)
  const data = authorizedCall(one.message, signatureOf(signed.authorizations[0] ?? ""))
  yield* scene.local.send({ to: one.token.contract as Address, data })
  yield* scene.local.mine()
  const sending = yield* scene.sendUntil(signed, "1 of 1 transactions sent")
  yield* scene.local.reorg(1)
  yield* scene.mining
  const { totals } = yield* scene.ends(Fiber.join(sending))
  expect(totals.find(({ currency }) => currency === "USDC")).toMatchObject({
    ...{ before: `${20n * usd}`, received: `${20n * usd}`, stayed: "0", cameMeanwhile: "0" }
  })
})

liveTest("replaces what is stuck also where the clock was set back", function* () {
  const { scene, signed } = yield* twoFunded
  const usual = yield* Clock.clockWith(Effect.succeed)
  let behind = 0
  const shifted: Clock.Clock = Object.assign(Object.create(usual), {
    currentTimeMillis: Effect.map(usual.currentTimeMillis, (now) => now - behind),
    unsafeCurrentTimeMillis: () => usual.unsafeCurrentTimeMillis() - behind
  })
  const sending = yield* Effect.withClock(
    scene.sendUntil(signed, "2 of 4 transactions sent", { patience: Duration.hours(1) }),
    shifted
  )
  behind = Duration.toMillis("1 day")
  yield* untilTrue(sending, () => scene.noted("sending").some((line) => line.includes('"place":0,"step":1')))
  yield* scene.mining
  yield* scene.ends(Fiber.join(sending))
})
