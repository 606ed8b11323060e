/** What a plan moves, leaves out and refuses. */
import { expect } from "@effect/vitest"
import { BigDecimal, Effect } from "effect"
import { type Address, type Hex, numberToHex } from "viem"
import type { PlannedRefund } from "../../src/Collect/candidates.ts"
import { startFaultProxy } from "../lib/faultProxy.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { callToken, collecting, deployToken, ether, funded, refundOf, someone, usd } from "./collecting.ts"
import type { Edit } from "./inFront.ts"
import { refusal } from "./refusal.ts"

const unpaid = "the money of exc_1 has 1 of the 4 confirmations"
/** Of an address with 20 USDC: what is to go back, each beside what counts for its payment, and why it does not. */
const refunds: ReadonlyArray<readonly [what: string, some: ReadonlyArray<Partial<PlannedRefund>>, why?: string]> = [
  ["all that is there", [{ amount: 20n * usd }]],
  ["more than is there", [{ amount: 20n * usd + 1n }], "exc_1 is 20.000001 USDC"],
  ["what is not decided on yet", [{ amount: usd, undecidable: unpaid }], `exc_1 waits: ${unpaid}`],
  ["all but what counts", [{ amount: 5n * usd, kept: 15n * usd }]],
  ["what counts", [{ amount: 5n * usd, kept: 15n * usd + 1n }], "has 4.999999 for it"],
  ["all in two", [{ amount: 15n * usd }, { amount: 5n * usd }]],
  ["more in two", [{ amount: 15n * usd }, { amount: 5n * usd + 1n }], "exc_2 is 5.000001 USDC, and 0x"],
  [
    "what counts in two",
    [
      { amount: 5n * usd, kept: 10n * usd },
      { amount: 5n * usd + 1n, kept: 10n * usd }
    ],
    "exc_2 is 5.000001 USDC, and 0x"
  ]
]

liveTest("plans refunds that are decided on, out of what counts for no payment and no other refund", function* () {
  const scene = yield* funded([["USDC", 1, 20n * usd]])
  yield* scene.local.mine(2)
  for (const [what, some, why] of refunds) {
    const all = some.map((one, i) => refundOf(scene, i + 1, one))
    if (why !== undefined) expect(yield* refusal(scene.plan({ refunds: all })), what).toContain(why)
    else expect((yield* scene.plan({ refunds: all })).plan.moves, what).toHaveLength(all.length)
  }
})

liveTest("plans nothing from who has sent what was not noted, or has a transaction under way", function* () {
  const scene = yield* funded([
    ["USDT", 1, 20n * usd],
    ["USDC", 1, 20n * usd]
  ])
  const address = scene.wallet.address(0)
  const refund = refundOf(scene, 1, { currency: "USDT", notedTransactions: 0 })
  expect((yield* scene.plan({ refunds: [refund] })).plan.moves).toHaveLength(1)
  yield* scene.sendFrom(address, { to: someone() })
  const busy = `${address} has a transaction under way`
  expect(yield* refusal(scene.plan({ received: scene.received(1) }))).toContain(busy)
  yield* scene.local.mine()
  for (const currency of ["USDT", "USDC", "ETH"]) {
    expect(yield* refusal(scene.plan({ refunds: [{ ...refund, currency }] }))).toContain(
      `${address} has sent 1 transaction, and tilld knows of 0: one of them may have sent exc_1 back already`
    )
  }
  const { plan } = yield* scene.plan({ refunds: [{ ...refund, notedTransactions: 1 }] })
  expect(plan.moves).toMatchObject([{ way: "token", nonce: 1 }])
  yield* scene.sendFrom(scene.sponsor, { to: someone() })
  expect(yield* refusal(scene.plan({ received: scene.received(1) }))).toContain(
    `${scene.sponsor} has a transaction under way`
  )
  yield* scene.local.mine()
  expect((yield* scene.plan({ received: scene.received(1) })).plan.sponsor.nonce).toBe(1)
})

liveTest("sends back by a signed transfer where one of two providers hides that the token takes it", function* () {
  const scene = yield* funded([["USDC", 1, 20n * usd]])
  let hidden = 0
  yield* scene.askThrough(({ method, params: [call] }, result) => {
    const isPlain = (call as { readonly data?: Hex } | undefined)?.data?.startsWith("0xa9059cbb") ?? true
    if (method !== "eth_estimateGas" || isPlain) return result
    hidden += 1
    return null
  }, undefined)
  const { plan } = yield* scene.plan({ refunds: [refundOf(scene, 1)] })
  expect(hidden).toBe(1)
  expect(plan.moves.map(({ way }) => way)).toEqual(["authorization"])
})

liveTest("leaves out what is worth less than its gas, with its tip", function* () {
  const scene = yield* funded([
    ["USDT", 1, 20n * usd],
    ["USDT", 1, 1_000n, 1],
    ["USDT", 1, usd, 2]
  ])
  const { plan } = yield* scene.plan({ received: scene.received(2) })
  expect(plan.moves.map(({ index }) => index)).toEqual([0])
  const why = expect.stringMatching(/^it is worth 0\.00 USD, and its gas costs \d+\.\d\d$/)
  expect(plan.leftOut).toMatchObject([{ index: 1, why }])
  const gwei = 10n ** 9n
  // A transfer takes about 0.3 USD of gas by the base fee alone, and six times as much with the tip.
  yield* scene.local.rpc("anvil_setNextBlockBaseFeePerGas", [numberToHex(gwei)])
  yield* scene.local.mine()
  yield* scene.askThrough(({ method }, result) =>
    method === "eth_maxPriorityFeePerGas" ? numberToHex(5n * gwei) : result
  )
  expect(yield* refusal(scene.plan({ received: scene.received(3).slice(2) }))).toMatch(
    /^There is nothing to move: it is worth 1\.00 USD, and its gas costs 1\.\d\d \(0x[0-9a-fA-F]{40}\)$/
  )
})

liveTest("takes coin that is worth a little more than its gas, however many fees are signed", function* () {
  const scene = yield* funded([["ETH", 1, ether]])
  const planned = scene.plan({ received: scene.received(1), feeSteps: 3 })
  const { plan } = yield* planned
  const gas = BigInt(plan.moves[0]?.gas ?? 0)
  const most = gas * BigInt(plan.fees.at(-1)?.most ?? 0)
  // The lowest step bears half as much again as the present base fee: less than that is left at the highest step.
  const left = (gas * BigInt(plan.fees[0]?.most ?? 0)) / 4n
  yield* scene.local.rpc("anvil_setBalance", [scene.wallet.address(0), numberToHex(most + left)])
  expect((yield* planned).plan.moves).toMatchObject([{ amount: `${left}` }])
  yield* scene.local.rpc("anvil_setBalance", [scene.wallet.address(0), numberToHex(most)])
  expect(yield* refusal(planned)).toContain("it is less than its gas may cost")
})

liveTest("plans nothing where two providers differ on a nonce, or by an hour on the head", function* () {
  const scene = yield* funded([["USDT", 1, 20n * usd]])
  yield* scene.local.mine(310)
  const { number } = yield* scene.local.head
  let isRead = false
  let lie: Edit = ({ method }, result) => (method === "eth_getTransactionCount" ? "0x9" : result)
  yield* scene.askThrough((call, result) => {
    if (call.method === "eth_getTransactionCount") isRead = true
    return lie(call, result)
  }, undefined)
  const planned = scene.plan({ received: scene.received(1) })
  expect(yield* refusal(planned)).toContain("Providers differ on the nonce")
  /** Of the plan's own head, or of the one that this is compared with. */
  const tell = (head: number, isLater: boolean) => {
    isRead = false
    lie = ({ method, params: [block] }, result) =>
      method === "eth_getBlockByNumber" && block === "latest" && isRead === isLater
        ? { ...(result as object), number: numberToHex(head) }
        : result
  }
  for (const head of [1, number - 301, number + 301]) {
    for (const isLater of [false, true]) {
      tell(head, isLater)
      expect(yield* refusal(planned)).toMatch(
        new RegExp(`^Providers differ on the head of the chain, ${isLater ? number : head} and .*wrong`)
      )
    }
  }
  tell(number - 300, false)
  expect((yield* planned).plan.block.number).toBe(number - 300)
})

liveTest("plans nothing with less gas than the chain takes, whatever a provider estimates", function* () {
  const scene = yield* funded([["USDT", 1, 20n * usd]])
  // Of a transfer, then of its funding.
  for (const hasData of [true, false]) {
    yield* scene.askThrough(({ method, params: [call] }, result) =>
      method === "eth_estimateGas" && "data" in (call as object) === hasData ? "0x1" : result
    )
    expect(yield* refusal(scene.plan({ received: scene.received(1) }))).toMatch(
      / has 1 gas where 0x\w{40} needs 2\d{4}: /
    )
  }
})

liveTest("plans the coins and tokens that are named, and no other ones", function* () {
  const scene = yield* collecting()
  yield* scene.pay("USDT", 2, 20n * usd)
  yield* scene.pay("USDC", 1, 20n * usd)
  const received = scene.received(2, (index) => ({ isOpen: index === 1 }))
  const { plan } = yield* scene.plan({ received, currencies: ["USDC"] })
  expect(plan.moves.map(({ token }) => token)).toEqual(["USDC"])
  expect(plan.leftOut).toEqual([])
  const { plan: other } = yield* scene.plan({ received, currencies: ["USDT"] })
  expect(other.leftOut).toMatchObject([{ currency: "USDT", address: scene.wallet.address(1) }])
  expect(yield* refusal(scene.plan({ received, currencies: ["USDC", "MATIC"] }))).toBe(
    "MATIC is not on ethereum: there are ETH, USDC, USDT, DAI"
  )
})

liveTest("leaves out a token that keeps a part, and what is worth less than --min-usd, not just as much", function* () {
  const scene = yield* collecting()
  yield* scene.pay("USDC", 1, 5n * usd)
  yield* scene.pay("USDT", 1, 4n * usd)
  const fee = yield* deployToken(scene.local, "FeeToken", "DAI", 18)
  yield* callToken(scene.local, fee, "mint", [scene.wallet.address(0), 50n * ether])
  scene.replaceToken("DAI", fee)
  const { plan } = yield* scene.plan({ received: scene.received(1), minUsd: BigDecimal.make(5n, 0) })
  expect(plan.moves.map(({ amount, token }) => [token, amount])).toEqual([["USDC", `${5n * usd}`]])
  expect(plan.tokens.map(({ symbol }) => symbol)).toEqual(["USDC"])
  expect(Object.fromEntries(plan.leftOut.map(({ currency, why }) => [currency, why]))).toEqual({
    USDT: "it is worth 4.00 USD, below --min-usd",
    DAI: expect.stringContaining("takes a fee")
  })
})

liveTest("leaves out a blacklisted source, an open payment, and another wallet's address", function* () {
  const scene = yield* collecting()
  yield* scene.pay("USDC", 5, 20n * usd)
  const usdc = scene.local.tokens.USDC?.address as Address
  yield* callToken(scene.local, usdc, "blacklist", [scene.wallet.address(1)])
  const held = (amount: bigint) => [{ currency: "USDC", amount: `${amount}`, is: "exception" as const }]
  const received = scene.received(5, (index) => ({
    isOpen: index === 2,
    held: index === 0 ? held(5n * usd) : index === 3 ? held(30n * usd) : [],
    // Of the address of the next index.
    ...(index === 4 ? { index: 5 } : {})
  }))
  const { plan } = yield* scene.plan({ received })
  expect(plan.moves.map(({ amount, index }) => [index, amount])).toEqual([[0, `${15n * usd}`]])
  expect(plan.leftOut[0]).toMatchObject({ index: 0, amount: `${5n * usd}` })
  expect(Object.fromEntries(plan.leftOut.map(({ index, why }) => [index, why]))).toEqual({
    0: "payment pay_0 has an open exception",
    1: expect.stringContaining("account is blacklisted"),
    2: "payment pay_2 is open",
    3: "payment pay_3 has an open exception",
    5: expect.stringContaining("another wallet")
  })
  // The token's refusal is seen where a provider does not simulate, too; its fees are not.
  const proxy = yield* startFaultProxy(scene.local.url)
  yield* proxy.set("noSimulation")
  yield* scene.askThrough(proxy.url)
  const { plan: tried, seesFees } = yield* scene.plan({ received: scene.received(2) })
  expect(proxy.count("eth_simulateV1")).toBeGreaterThan(0)
  expect(seesFees).toBe(false)
  expect(tried.moves.map(({ index }) => index)).toEqual([0])
  expect(tried.leftOut).toMatchObject([{ index: 1, why: expect.stringContaining("account is blacklisted") }])
})

interface Simulated {
  readonly calls: ReadonlyArray<{ readonly logs: ReadonlyArray<object> }>
}

/** Changes what each simulated call has done. */
const simulating =
  (edit: (call: Simulated["calls"][number]) => object): Edit =>
  ({ method }, result) =>
    method === "eth_simulateV1"
      ? (result as ReadonlyArray<Simulated>).map(({ calls }) => ({ calls: calls.map(edit) }))
      : result

liveTest("takes for a refusal what a contract says, returns or does to another token, in one line", function* () {
  const scene = yield* collecting()
  yield* scene.pay("USDC", 1, 20n * usd)
  const because = Effect.fnUntraced(function* (edit: Edit) {
    yield* scene.askThrough(edit)
    return yield* refusal(scene.plan({ received: scene.received(1) }))
  })
  const other = someone()
  expect(
    yield* because(
      simulating(({ logs, ...call }) => ({ ...call, logs: logs.map((log) => ({ ...log, address: other })) }))
    )
  ).toContain(`its contract takes a fee: 0 of ${20n * usd} base units would arrive`)
  const no = numberToHex(0n, { size: 32 })
  const why = `There is nothing to move: its contract refuses the transfer (${scene.wallet.address(0)})`
  expect(yield* because(simulating((call) => ({ ...call, returnData: no })))).toBe(why)
  const returning: Edit = ({ method, params: [asked] }, result) => {
    if (method === "eth_simulateV1") return null
    return method === "eth_call" && JSON.stringify(asked).includes('"0xa9059cbb') ? no : result
  }
  expect(yield* because(returning)).toBe(why)
  const message = `no\n\u001b[2J\u202ething ${"x".repeat(500)}`
  const shown = yield* because(simulating(() => ({ status: "0x0", logs: [], error: { message } })))
  expect(shown).toContain("its contract refuses the transfer: no \\u001b[2J\\u202ething xxx")
  expect(shown).toMatch(/^[\P{C}]{1,400}$/u)
})
