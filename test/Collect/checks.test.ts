import { readFileSync, rmSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Option, Redacted, Schedule } from "effect"
import { encodeFunctionData, erc20Abi, type Hex, numberToHex } from "viem"
import { checksumOf, type Signed } from "../../src/Collect/Signed.ts"
import { type Collecting, collecting, someone, untilSaid, untilTrue, whileSending } from "./collecting.ts"
import { inFrontOf } from "./inFront.ts"
import { refusal } from "./refusal.ts"

const usd = 10n ** 6n
const ether = 10n ** 18n

/** An address with USDT, which takes no authorizations, and a sponsor with coin. */
const funded = Effect.gen(function* () {
  const scene = yield* collecting()
  yield* scene.pay("USDT", 1, 20n * usd)
  yield* scene.local.payNative({ to: scene.sponsor, amount: ether })
  yield* scene.local.mine()
  return scene
})

/** Sends from an address without its key, and mines it. */
const sendFrom = ({ local }: Collecting, from: string, call: { readonly to: string; readonly data?: Hex }) =>
  Effect.gen(function* () {
    yield* local.rpc("anvil_impersonateAccount", [from])
    yield* local.rpc("anvil_setBalance", [from, numberToHex(ether)])
    yield* local.rpc("eth_sendTransaction", [{ from, ...call }])
    yield* local.mine()
  })

it.scopedLive("sends nothing without its journal once some of it is on the chain", () =>
  Effect.gen(function* () {
    const scene = yield* funded
    const { plan } = yield* scene.plan({ received: scene.received(1) })
    const signed = yield* scene.sign(plan)
    yield* scene.mining
    expect((yield* scene.send(signed)).result.differences).toEqual([])
    rmSync(scene.journalPath)
    expect(yield* scene.refused(signed)).toContain(
      "Some of it was sent already, by this file, another copy or another plan"
    )
  })
)

it.scopedLive("sends no transaction that the same wallet has signed for another plan", () =>
  Effect.gen(function* () {
    const scene = yield* funded
    const received = scene.received(1)
    const { plan } = yield* scene.plan({ received })
    const { plan: other } = yield* scene.plan({ received, destination: someone() })
    const { transactions: foreign } = yield* scene.sign(other)
    const own = yield* scene.sign(plan)
    const [, transfer] = foreign
    const transactions = own.transactions.map((each, place) => (place === 1 ? (transfer ?? each) : each))
    expect(transactions).not.toEqual(own.transactions)
    const mixed: Signed = { ...own, transactions, checksum: checksumOf({ ...own, transactions }) }
    expect(yield* scene.refused(mixed)).toContain(`Transaction 2, of ${scene.wallet.address(0)},`)
  })
)

it.scopedLive("sends no token but that of the configuration", () =>
  Effect.gen(function* () {
    const scene = yield* funded
    const { plan } = yield* scene.plan({ received: scene.received(1) })
    const signed = yield* scene.sign(plan)
    scene.replaceToken("USDT", someone())
    expect(yield* scene.refused(signed)).toContain(
      `${plan.tokens[0]?.contract} is not the USDT of ethereum.test in this configuration`
    )
  })
)

it.scopedLive("refuses where the refunds of an address are more than it has by now, though each is less", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    yield* scene.fund
    const address = scene.wallet.address(0)
    const refunds = [2n, 3n, 7n].map((amount) => ({
      ...{ id: `exc_${amount}`, address, index: 0, currency: "USDC", amount: amount * usd }
    }))
    const { plan } = yield* scene.plan({ refunds })
    const signed = yield* scene.sign(plan)
    const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [someone(), 9n * usd] })
    yield* sendFrom(scene, address, { to: scene.local.tokens.USDC?.address ?? "", data })
    expect(yield* scene.refused(signed)).toContain(`${address} lacks 1 USDC of what the plan moves`)
  })
)

it.scopedLive("sends nothing back from an address that has sent what was not noted, whichever way", () =>
  Effect.gen(function* () {
    const scene = yield* funded
    yield* scene.pay("USDC", 1, 20n * usd)
    const address = scene.wallet.address(0)
    const refund = { id: "exc_1", address, index: 0, currency: "USDT", amount: 5n * usd, notedTransactions: 0 }
    expect((yield* scene.plan({ refunds: [refund] })).plan.moves).toHaveLength(1)
    yield* sendFrom(scene, address, { to: someone() })
    for (const currency of ["USDT", "USDC", "ETH"]) {
      expect(yield* refusal(scene.plan({ refunds: [{ ...refund, currency }] }))).toContain(
        `${address} has sent 1 transaction, and tilld knows of 0: one of them may have sent exc_1 back already`
      )
    }
    const { plan } = yield* scene.plan({ refunds: [{ ...refund, notedTransactions: 1 }] })
    expect(plan.moves).toMatchObject([{ way: "token", nonce: 1 }])
  })
)

it.scopedLive("sends back by a signed transfer where one of two providers hides that the token takes it", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    yield* scene.fund
    let hidden = 0
    const front = yield* inFrontOf(scene.local.url, ({ method, params: [call] }, result) => {
      const isPlain = (call as { readonly data?: Hex } | undefined)?.data?.startsWith("0xa9059cbb") ?? true
      if (method !== "eth_estimateGas" || isPlain) return result
      hidden += 1
      return null
    })
    scene.change({ rpcUrls: [front.url, scene.local.url].map((url) => Redacted.make(url)) })
    const refund = { id: "exc_1", address: scene.wallet.address(0), index: 0, currency: "USDC", amount: 5n * usd }
    const { plan } = yield* scene.plan({ refunds: [refund] })
    expect(hidden).toBe(1)
    expect(plan.moves.map(({ way }) => way)).toEqual(["authorization"])
  })
)

it.scopedLive("leaves out what is worth less than its gas", () =>
  Effect.gen(function* () {
    const scene = yield* funded
    yield* scene.pay("USDT", 1, 1_000n, 1)
    const { plan } = yield* scene.plan({ received: scene.received(2) })
    expect(plan.moves.map(({ index }) => index)).toEqual([0])
    expect(plan.leftOut).toMatchObject([
      { index: 1, why: expect.stringMatching(/^it is worth 0\.00 USD, and its gas costs \d+\.\d\d$/) }
    ])
  })
)

it.scopedLive("counts the tip in what the gas of a move costs", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    const gwei = 10n ** 9n
    // A transfer takes about 0.3 USD of gas by the base fee alone, and six times as much with the tip.
    yield* scene.pay("USDT", 1, usd)
    yield* scene.local.rpc("anvil_setNextBlockBaseFeePerGas", [numberToHex(gwei)])
    yield* scene.local.mine()
    const front = yield* inFrontOf(scene.local.url, ({ method }, result) =>
      method === "eth_maxPriorityFeePerGas" ? numberToHex(5n * gwei) : result
    )
    scene.change({ rpcUrls: [Redacted.make(front.url)] })
    expect(yield* refusal(scene.plan({ received: scene.received(1) }))).toMatch(
      /^There is nothing to move: it is worth 1\.00 USD, and its gas costs 1\.\d\d \(0x[0-9a-fA-F]{40}\)$/
    )
  })
)

it.scopedLive("gives up no transaction before what has used its nonce is as deep as the confirmations", () =>
  Effect.gen(function* () {
    const scene = yield* funded
    scene.change({ confirmations: 4 })
    const { plan } = yield* scene.plan({ received: scene.received(1) })
    const signed = yield* scene.sign(plan)
    let asked = 0
    const front = yield* inFrontOf(scene.local.url, ({ method, params: [, block] }, result) => {
      if (method === "eth_getTransactionCount" && block !== "latest") asked += 1
      return result
    })
    scene.change({ rpcUrls: [Redacted.make(front.url)] })
    const sending = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, sending, "1 of 2 transactions sent")
    yield* scene.local.rpc("anvil_dropAllTransactions")
    yield* sendFrom(scene, scene.sponsor, { to: someone() })
    // It has looked how deep that is, and goes on to look.
    yield* untilTrue(sending, () => asked >= 2)
    expect(yield* Fiber.poll(sending)).toEqual(Option.none())
    expect(scene.said.filter((text) => text.includes("given up"))).toEqual([])
    yield* scene.local.mine(3)
    yield* untilSaid(scene, sending, "this one is given up")
    expect((yield* Fiber.join(sending)).result).toMatchObject({ transfers: [] })
  })
)

it.scopedLive("confirms nothing that is less deep by the head of the second provider", () =>
  Effect.gen(function* () {
    const scene = yield* collecting({ confirmations: 3 })
    yield* scene.pay("ETH", 1, ether)
    const { plan } = yield* scene.plan({ received: scene.received(1) })
    const signed = yield* scene.sign(plan)
    let isBehind = true
    let asked = 0
    let block: Hex = "0x0"
    const second = yield* inFrontOf(scene.local.url, ({ method, params: [at] }, result) => {
      if (method === "eth_getTransactionReceipt" && result !== null) {
        asked += 1
        block = (result as { readonly blockNumber: Hex }).blockNumber
      }
      // Its head is the block of the transaction.
      const isHead = method === "eth_getBlockByNumber" && at === "latest" && isBehind && block !== "0x0"
      return isHead ? { ...(result as object), number: block } : result
    })
    scene.change({ rpcUrls: [scene.local.url, second.url].map((url) => Redacted.make(url)) })
    yield* scene.mining
    const sending = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, sending, "1 of 1 transactions sent, 1 in a block")
    const { number } = yield* scene.local.head
    yield* whileSending(
      sending,
      Effect.repeat(scene.local.head, {
        until: (head) => head.number > number + 3,
        schedule: Schedule.spaced("20 millis")
      })
    )
    const before = asked
    // Each look asks twice: where it is, and how deep.
    yield* untilTrue(sending, () => asked >= before + 5)
    expect(readFileSync(scene.journalPath, "utf8")).not.toContain('"event":"confirmed"')
    isBehind = false
    expect((yield* Fiber.join(sending)).result.differences).toEqual([])
  })
)

it.scopedLive("takes coin that is worth a little more than its gas, however many fees are signed", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("ETH", 1, ether)
    const received = scene.received(1)
    const { plan } = yield* scene.plan({ received, feeSteps: 3 })
    const gas = BigInt(plan.moves[0]?.gas ?? 0)
    const most = gas * BigInt(plan.fees.at(-1)?.most ?? 0)
    // The lowest step bears half as much again as the present base fee: less than that is left at the highest step.
    const left = (gas * BigInt(plan.fees[0]?.most ?? 0)) / 4n
    yield* scene.local.rpc("anvil_setBalance", [scene.wallet.address(0), numberToHex(most + left)])
    const { plan: small } = yield* scene.plan({ received, feeSteps: 3 })
    expect(small.moves).toMatchObject([{ amount: `${left}` }])
    yield* scene.local.rpc("anvil_setBalance", [scene.wallet.address(0), numberToHex(most)])
    expect(yield* refusal(scene.plan({ received, feeSteps: 3 }))).toContain("it is less than its gas may cost")
  })
)

it.scopedLive("plans nothing of a block that is more than an hour from the head of either provider", () =>
  Effect.gen(function* () {
    const scene = yield* funded
    yield* scene.local.mine(310)
    const { number } = yield* scene.local.head
    let [other, isLater, isRead] = [number, false, false]
    // It lies of the plan's own head, or of the one that this is compared with.
    const front = yield* inFrontOf(scene.local.url, ({ method, params: [block] }, result) => {
      if (method === "eth_getTransactionCount") isRead = true
      return method === "eth_getBlockByNumber" && block === "latest" && isRead === isLater
        ? { ...(result as object), number: numberToHex(other) }
        : result
    })
    scene.change({ rpcUrls: [front.url, scene.local.url].map((url) => Redacted.make(url)) })
    const received = scene.received(1)
    const planned = Effect.suspend(() => scene.plan({ received }))
    const tell = (head: number, later: boolean) => {
      ;[other, isLater, isRead] = [head, later, false]
    }
    for (const head of [1, number - 301, number + 301]) {
      for (const later of [false, true]) {
        tell(head, later)
        expect(yield* refusal(planned)).toMatch(
          new RegExp(`^Providers differ on the head of the chain, ${later ? number : head} and .*wrong`)
        )
      }
    }
    tell(number - 300, false)
    expect((yield* planned).plan.block.number).toBe(number - 300)
  })
)

it.scopedLive(
  "plans nothing with less gas than the chain takes a transaction with, whatever a provider estimates",
  () =>
    Effect.gen(function* () {
      const scene = yield* funded
      const lies = { token: (data?: string) => data !== undefined, funding: (data?: string) => data === undefined }
      for (const isLie of Object.values(lies)) {
        const front = yield* inFrontOf(scene.local.url, ({ method, params: [call] }, result) =>
          method === "eth_estimateGas" && isLie((call as { readonly data?: string }).data) ? "0x1" : result
        )
        scene.change({ rpcUrls: [Redacted.make(front.url)] })
        expect(yield* refusal(scene.plan({ received: scene.received(1) }))).toMatch(
          / has 1 gas where 0x\w{40} needs 2\d{4}: /
        )
      }
    })
)

it.scopedLive("plans the coins and tokens that are named, and no other ones", () =>
  Effect.gen(function* () {
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
)
