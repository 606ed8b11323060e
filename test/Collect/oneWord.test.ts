/** What one provider says of a broadcast by itself, and what it must not do to it. */
import { existsSync, writeFileSync } from "node:fs"
import { describe, expect } from "@effect/vitest"
import { Duration, Effect, Fiber, Option, Schedule } from "effect"
import { type Hex, numberToHex, size, toFunctionSelector } from "viem"
import { collectRefusal } from "../../src/Collect/Plan.ts"
import { startFaultProxy } from "../lib/faultProxy.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { ether, type Paid, prepared, refundOf, untilSaid, untilTrue, usd, whileSending } from "./collecting.ts"
import type { Asked, Edit } from "./inFront.ts"
import { refusal } from "./refusal.ts"

const truth: Edit = (_, result) => result

/** An address with USDC and one with USDT, and a provider that can lie, before an honest one. */
const withLiar = Effect.fnUntraced(function* (
  paid: ReadonlyArray<Paid> = [
    ["USDC", 1, 20n * usd],
    ["USDT", 1, 30n * usd, 1]
  ]
) {
  const made = yield* prepared(paid)
  let lie = truth
  const liar: Edit = (call, result) => lie(call, result)
  yield* made.scene.askThrough(liar, undefined)
  const tell = (next: Edit = truth) => {
    lie = next
  }
  return { ...made, liar, tell }
})

const five: ReadonlyArray<Paid> = [
  ["USDC", 3, 20n * usd],
  ["USDT", 2, 30n * usd, 3]
]

const inventedReceipt = (transactionHash: unknown) => ({
  ...{ transactionHash, blockHash: `0x${"fa".repeat(32)}`, blockNumber: "0x1", status: "0x1" }
})

const isAboutReceipt = ({ method }: Asked): boolean => method === "eth_getTransactionReceipt"

const lastLooks: ReadonlyArray<readonly [what: string, lie: Edit]> = [
  ["another step in a block", ({ params: [hash] }, result) => result ?? inventedReceipt(hash)],
  ["that each has failed", (_, result) => (result === null ? null : { ...(result as object), status: "0x0" })]
]

for (const [what, lie] of lastLooks) {
  liveTest(`does not believe one provider that shows, of what two have confirmed, ${what}`, function* () {
    const { scene, signed, tell } = yield* withLiar()
    let lied = 0
    tell((call, result) => {
      const isLast = scene.noted("confirmed").length === signed.transactions.length
      if (!isAboutReceipt(call) || !isLast) return result
      lied += 1
      return lie(call, result)
    })
    const isStuck = () => scene.said.filter((text) => text.includes("eth_getTransactionReceipt")).length > 2
    const onProgress = (text: string) =>
      Effect.sync(() => {
        scene.said.push(text)
        if (text === "adding everything up") tell()
      })
    yield* scene.mining
    const sending = yield* Effect.fork(scene.send(signed, { onProgress }))
    // It would say for ever that a receipt is missing.
    const stuck = Effect.zipRight(untilTrue(sending, isStuck), Effect.dieMessage("it adds up for ever"))
    yield* scene.ends(Effect.raceFirst(Fiber.join(sending), stuck))
    expect(lied).toBeGreaterThan(0)
    expect(scene.noted("confirmed")).toHaveLength(signed.transactions.length)
    expect(scene.noted().at(-2)).toContain('"event":"confirmed"')
  })
}

/** Five coins more than an address has, in each answer about coin. */
const richer: Edit = ({ method, params }, result) => {
  const more = (amount: string) => BigInt(amount) + 5n * ether
  if (method === "eth_getBalance") return numberToHex(more(result as string))
  // The code that reads the coin of many addresses at once.
  if (method !== "eth_call" || !JSON.stringify(params).includes("00ba1a9ce00ba1a9")) return result
  const words = (result as string).slice(2).match(/.{64}/g) ?? []
  return `0x${words.map((word) => more(`0x${word}`).toString(16).padStart(64, "0")).join("")}`
}

liveTest("begins with the lower of what two providers say that there is", function* () {
  const { scene, signed, tell } = yield* withLiar()
  yield* scene.mining
  let told = 0
  tell((call, result) => {
    const lie = scene.noted("begun").length === 0 ? richer(call, result) : result
    if (lie !== result) told += 1
    return lie
  })
  const { totals } = yield* scene.sent(signed)
  expect(told).toBeGreaterThan(0)
  expect(totals.find(({ currency }) => currency === "ETH")?.before).toBe(`${ether}`)
})

/** Of the USDT at the second address. */
const refunding = Effect.gen(function* () {
  const { scene, ...rest } = yield* withLiar()
  const refunds = [refundOf(scene, 5, { index: 1, currency: "USDT" })]
  return { ...rest, scene, ...(yield* scene.planned({ refunds })) }
})

liveTest("checks a refund that one provider alone shows as sent, and none that was sent", function* () {
  const { liar, scene, signed, tell } = yield* refunding
  // Ended before the refund was sent: its gas is under way.
  yield* scene.cutOff(signed, "1 of 2 transactions sent")
  const asked: Array<ReadonlyArray<string>> = []
  const closed = (unpaid: ReadonlyArray<{ readonly of: string }>) => {
    asked.push(unpaid.map(({ of }) => of))
    if (unpaid.length > 0) return collectRefusal("exc_5 is closed")
    tell()
    return Effect.succeed({ notOwed: new Map(), held: new Map() })
  }
  tell((call, result) => (isAboutReceipt(call) ? inventedReceipt(call.params[0]) : result))
  yield* scene.mining
  expect(yield* refusal(scene.send(signed, {}, closed))).toBe("exc_5 is closed")
  expect(asked).toEqual([["exc_5"]])
  expect(yield* scene.arrived("USDT")).toBe(0n)
  tell()
  yield* scene.sent(signed)
  const without = (...events: ReadonlyArray<string>) => {
    const left = scene.noted().filter((line) => !events.some((event) => line.startsWith(`{"event":"${event}"`)))
    writeFileSync(scene.journalPath, `${left.join("\n")}\n`)
  }
  // Both show it, and the journal does not; then the journal has it, and one hides it.
  asked.length = 0
  without("finished", "confirmed")
  yield* scene.sent(signed, {}, closed)
  without("finished")
  yield* scene.askThrough(undefined, liar)
  tell((call, result) => (isAboutReceipt(call) ? null : result))
  yield* scene.sent(signed, {}, closed)
  expect(asked).toEqual([[], []])
})

/** The block that the second provider says is the last one: that of the transaction. */
let lastBlock: Hex = "0x0"
const unconfirmed: ReadonlyArray<readonly [what: string, second: Edit, looks: number]> = [
  ["does not answer", () => Promise.reject(new Error("silent")), 0],
  ["has not seen it", (call, result) => (isAboutReceipt(call) ? null : result), 5],
  [
    "has it less deep",
    (call, result) => {
      if (isAboutReceipt(call) && result !== null) lastBlock = (result as { readonly blockNumber: Hex }).blockNumber
      const isHead = call.method === "eth_getBlockByNumber" && call.params[0] === "latest" && lastBlock !== "0x0"
      return isHead ? { ...(result as object), number: lastBlock } : result
    },
    5
  ]
]

liveTest("gives nothing up because one provider says that its nonce is used, and hides its receipts", function* () {
  const { scene, signed, tell } = yield* withLiar(five)
  let asked = 0
  const sending = yield* scene.sendUntil(signed, "of 5 transactions sent")
  tell((call, result) => {
    const isAboutNonce = call.method === "eth_getTransactionCount"
    if (isAboutNonce && call.params[1] !== "latest") asked += 1
    return isAboutReceipt(call) ? null : isAboutNonce ? "0x9" : result
  })
  // It has looked which of the three are replaced, and looks again.
  yield* untilTrue(sending, () => asked > 3)
  yield* scene.mining
  yield* untilSaid(scene, sending, "no two providers say the same")
  tell()
  yield* scene.ends(Fiber.join(sending))
  expect(scene.said.filter((text) => text.includes("given up"))).toEqual([])
})

liveTest("shows as a difference what one of two providers does not say, or says is less", function* () {
  const { liar, scene, signed, tell } = yield* withLiar([["USDC", 3, 20n * usd]])
  yield* scene.askThrough(undefined, liar)
  tell((call, result) => (isAboutReceipt(call) && result !== null ? { ...(result as object), logs: [] } : result))
  yield* scene.mining
  const { result } = yield* scene.send(signed)
  expect(result.transfers).toEqual([])
  expect(result.differences.length).toBeGreaterThan(0)
  // A word for each address, the sponsor's last.
  tell(({ method, params: [, , overrides] }, answer) =>
    method === "eth_call" && overrides !== undefined
      ? numberToHex(BigInt(answer as Hex) - 7n, { size: size(answer as Hex) })
      : answer
  )
  const { result: second } = yield* scene.send(signed)
  expect(second.transfers).toHaveLength(3)
  expect(second.differences).toEqual([
    { address: scene.sponsor, currency: "ETH", amount: "7", why: "something else took it from there" }
  ])
  tell()
  yield* scene.sent(signed)
})

liveTest("does not believe a provider that has a transaction in a block far above the head", function* () {
  const { scene, signed, tell } = yield* withLiar(five)
  const far = 1_000_000
  const sending = yield* scene.sendUntil(signed, "of 5 transactions sent")
  tell((call, result) =>
    isAboutReceipt(call) ? { ...inventedReceipt(call.params[0]), blockNumber: numberToHex(far) } : result
  )
  const believed = () => scene.said.filter((text) => /[1-9] in a block/.test(text))
  const doubt = new RegExp(`^a provider has 0x[0-9a-f]{64} in block ${far}, and the head is \\d+: it is not believed$`)
  yield* untilTrue(sending, () => scene.said.some((text) => doubt.test(text)) || believed().length > 0)
  expect(believed()).toEqual([])
  expect(scene.noted("mined")).toEqual([])
  yield* scene.mining
  // By what the other one says.
  yield* untilSaid(scene, sending, "5 in a block, 0 confirmed")
  yield* untilSaid(scene, sending, "no two providers say the same")
  tell()
  yield* scene.ends(Fiber.join(sending))
  expect(scene.said.filter((text) => text.includes("a reorg took"))).toEqual([])
})

const dearer =
  (by: bigint): Edit =>
  ({ method }, result) => {
    if (method === "eth_maxPriorityFeePerGas") return numberToHex(ether)
    const { baseFeePerGas } = (result ?? {}) as { readonly baseFeePerGas?: Hex }
    if (method !== "eth_getBlockByNumber" || baseFeePerGas === undefined) return result
    return { ...(result as object), baseFeePerGas: numberToHex(BigInt(baseFeePerGas) * by) }
  }

liveTest("takes the lower fees of two providers, and no absurd tip of one alone", function* () {
  const { liar, plan, scene, signed, tell } = yield* withLiar()
  tell(dearer(1_000n))
  const again = yield* scene.plan({ received: scene.received(2) })
  expect(again.plan.fees).toEqual(plan.fees)
  // Above the first step, at the last one.
  tell(dearer(2n))
  yield* scene.mining
  yield* scene.sent(signed, { patience: Duration.minutes(10) })
  const steps = scene.noted("sending").map((line) => /"step":(\d)/.exec(line)?.[1])
  expect(new Set(steps)).toEqual(new Set(["0"]))
  yield* scene.askThrough(liar)
  yield* scene.pay("USDC", 1, 20n * usd)
  const alone = yield* scene.plan({ received: scene.received(1) })
  expect(alone.plan.fees[0].tip).toBe(`${5n * 10n ** 9n}`)
})

const refusedByOne: ReadonlyArray<readonly [what: string, lie: Edit, said: string]> = [
  [
    "a nonce has moved",
    ({ method }, result) => (method === "eth_getTransactionCount" ? "0x9" : result),
    "is 9, and 0 was signed"
  ],
  [
    "something was sent",
    (call, result) => (isAboutReceipt(call) ? inventedReceipt(call.params[0]) : result),
    "Some of it was sent already"
  ],
  [
    "authorizations end",
    ({ method }, result) =>
      method === "eth_getBlockByNumber" ? { ...(result as object), timestamp: "0xffffffff" } : result,
    "authorizations end, or have ended"
  ]
]

/** Whether a call asks, alone or in a batch of Multicall3, which authorizations were carried out. */
const asksForUsed = ({ method, params: [asked] }: Asked): boolean =>
  method === "eth_call" &&
  JSON.stringify(asked).includes(toFunctionSelector("authorizationState(address,bytes32)").slice(2))

const unanswered: ReadonlyArray<readonly [what: string, lie: Edit]> = [
  ["does not answer", (call, result) => (asksForUsed(call) ? Promise.reject(new Error("silent")) : result)],
  // Neither a result of Multicall3 nor a boolean.
  ["answers garbage", (call, result) => (asksForUsed(call) ? numberToHex(2n, { size: 32 }) : result)]
]

describe.concurrent("with a provider that fails or differs, whose retries it waits for,", () => {
  for (const [what, second, looks] of unconfirmed) {
    liveTest(`confirms nothing while the second provider ${what}, however deep it is by the first`, function* () {
      const { scene, signed } = yield* prepared([["ETH", 1, ether]])
      let lie = truth
      let asked = 0
      yield* scene.askThrough(undefined, (call, result) => {
        if (isAboutReceipt(call)) asked += 1
        return lie(call, result)
      })
      const sending = yield* scene.sendUntil(signed, "1 of 1 transactions sent")
      lie = second
      yield* scene.mining
      yield* untilSaid(scene, sending, "1 in a block")
      const { number } = yield* scene.local.head
      const isDeep = {
        until: (head: { number: number }) => head.number > number + 10,
        schedule: Schedule.spaced("20 millis")
      }
      yield* whileSending(sending, Effect.repeat(scene.local.head, isDeep))
      const before = asked
      yield* untilTrue(sending, () => asked >= before + looks)
      expect(yield* Fiber.poll(sending)).toEqual(Option.none())
      expect([scene.noted("mined").length, scene.noted("confirmed")]).toEqual([1, []])
      lie = truth
      yield* scene.ends(Fiber.join(sending))
    })
  }

  for (const [what, lie, said] of refusedByOne) {
    liveTest(`does not tell to make a new plan where one provider alone says that ${what}`, function* () {
      const { scene, signed, tell } = yield* withLiar()
      tell(lie)
      const told = yield* scene.refused(signed)
      for (const text of ["providers differ: ", said, "Remedy: look in a block explorer which one is wrong"]) {
        expect(told).toContain(text)
      }
      expect(existsSync(scene.journalPath)).toBe(false)
      // One that differs once, as when something is mined between the two.
      let isTold = false
      tell((call, result) => {
        const lied = isTold ? result : lie(call, result)
        isTold ||= lied !== result
        return lied
      })
      yield* scene.mining
      yield* scene.sent(signed)
      expect(isTold).toBe(true)
    })
  }

  liveTest("begins nothing, and goes on with no refund, while the second provider does not answer", function* () {
    const { scene, signed } = yield* refunding
    const proxy = yield* startFaultProxy(scene.local.url)
    yield* scene.askThrough(undefined, proxy.url)
    yield* proxy.set("drop")
    expect(yield* scene.refused(signed)).toContain("no other provider of rpc_urls answers")
    expect(existsSync(scene.journalPath)).toBe(false)
    yield* proxy.set()
    yield* scene.cutOff(signed, "1 of 2 transactions sent")
    yield* proxy.set("drop")
    expect(yield* scene.refused(signed)).toContain("no other provider of rpc_urls answers")
    yield* proxy.set()
    yield* scene.mining
    yield* scene.sent(signed)
  })

  for (const [what, lie] of unanswered) {
    liveTest(`accounts by no provider alone while the other one ${what} of authorizations`, function* () {
      const { scene, signed, tell } = yield* withLiar()
      const sending = yield* scene.sendUntil(signed, "of 3 transactions sent")
      tell(lie)
      yield* scene.mining
      yield* untilSaid(scene, sending, "3 confirmed")
      yield* untilSaid(scene, sending, "no other provider of rpc_urls answers, and one alone does not decide")
      expect(yield* Fiber.poll(sending)).toEqual(Option.none())
      expect([...scene.noted("accounted"), ...scene.noted("finished")]).toEqual([])
      tell()
      yield* scene.ends(Fiber.join(sending))
    })
  }

  liveTest("sends again what a reorg takes out while everything is added up", function* () {
    const { scene, signed } = yield* prepared(five)
    const { local } = scene
    const { number: before } = yield* local.head
    let isMining = true
    const mining = Effect.suspend(() => (isMining ? local.mine() : Effect.void))
    yield* Effect.forkScoped(Effect.forever(Effect.delay(mining, "100 millis")))
    const onProgress = Effect.fnUntraced(function* (text: string) {
      if (text !== "adding everything up") return
      isMining = false
      const { number } = yield* Effect.orDie(local.head)
      yield* Effect.orDie(local.reorg(number - before))
      isMining = true
    })
    yield* scene.sent(signed, { onProgress })
    expect(scene.noted("fell out").length).toBeGreaterThan(0)
  })
})
