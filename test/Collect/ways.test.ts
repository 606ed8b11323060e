import { expect, it } from "@effect/vitest"
import { BigDecimal, Effect, Redacted } from "effect"
import { type Address, numberToHex } from "viem"
import { startFaultProxy } from "../lib/faultProxy.ts"
import { callToken, collecting, deployToken, holdsExactly, someone } from "./collecting.ts"
import { inFrontOf } from "./inFront.ts"
import { refusal } from "./refusal.ts"

interface Simulated {
  readonly calls: ReadonlyArray<{ readonly logs: ReadonlyArray<object> }>
}

const usd = 10n ** 6n
const ether = 10n ** 18n

it.scopedLive("moves USDC from 50 addresses in one transaction, and accounts for every unit", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 50, 20n * usd)
    yield* scene.fund
    const { plan, seesFees } = yield* scene.plan({ received: scene.received(50) })
    expect(seesFees).toBe(true)
    expect(new Set(plan.moves.map(({ way }) => way))).toEqual(new Set(["authorization"]))
    const signed = yield* scene.sign(plan)
    expect(signed.transactions).toHaveLength(1)
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect(result.differences).toEqual([])
    expect(result.transfers).toHaveLength(50)
    expect(new Set(result.transfers.map(({ hash }) => hash)).size).toBe(1)
    expect(yield* scene.local.tokenBalance("USDC", scene.destination)).toBe(1_000n * usd)
    expect(holdsExactly(result)).toBe(true)
    expect(result.totals.find(({ currency }) => currency === "USDC")).toMatchObject({
      before: `${1_000n * usd}`,
      received: `${1_000n * usd}`,
      stayed: "0"
    })
  })
)

it.scopedLive("brings gas for tokens without authorizations, also for one that returns nothing", () =>
  Effect.gen(function* () {
    const scene = yield* collecting({ chain: "base" })
    yield* scene.pay("USDT", 3, 20n * usd)
    yield* scene.pay("DAI", 2, 30n * ether, 3)
    // This one has gas of its own.
    yield* scene.pay("ETH", 1, ether / 100n, 4)
    yield* scene.fund
    const { plan } = yield* scene.plan({ received: scene.received(5), currencies: ["USDT", "DAI"] })
    expect(plan.moves.map(({ way }) => way)).toEqual(Array.from({ length: 5 }, () => "token"))
    expect(plan.moves.map(({ funding }) => funding === "0")).toEqual([false, false, false, false, true])
    const signed = yield* scene.sign(plan)
    expect(signed.transactions).toHaveLength(9)
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    expect(yield* scene.local.tokenBalance("USDT", scene.destination)).toBe(60n * usd)
    expect(yield* scene.local.tokenBalance("DAI", scene.destination)).toBe(60n * ether)
  })
)

it.scopedLive("sends coin less its gas, and what is left after the transfers of tokens", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("ETH", 3, ether)
    yield* scene.pay("USDT", 1, 20n * usd)
    const { plan } = yield* scene.plan({ received: scene.received(3) })
    expect(plan.moves.map(({ way }) => way)).toEqual(["token", "native", "native", "native"])
    expect(plan.sponsor.needsWei).toBe("0")
    yield* scene.mining
    const { result } = yield* scene.send(yield* scene.sign(plan))
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    const coin = result.totals.find(({ currency }) => currency === "ETH")
    expect(`${yield* scene.local.balance(scene.destination)}`).toBe(coin?.received)
    expect(BigInt(coin?.before ?? 0)).toBe(3n * ether)
  })
)

it.scopedLive("sends coin back whole where the address has no more: its gas is the sponsor's", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("ETH", 1, ether)
    yield* scene.fund
    const refund = { id: "exc_1", address: scene.wallet.address(0), index: 0, currency: "ETH", amount: ether }
    const { plan } = yield* scene.plan({ refunds: [refund] })
    yield* scene.mining
    const { result } = yield* scene.send(yield* scene.sign(plan))
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    expect(yield* scene.local.balance(scene.destination)).toBe(ether)
  })
)

it.scopedLive("leaves out a token that keeps a part of each transfer", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    const fee = yield* deployToken(scene.local, "FeeToken", "DAI", 18)
    yield* callToken(scene.local, fee, "mint", [scene.wallet.address(0), 50n * ether])
    scene.replaceToken("DAI", fee)
    const { plan } = yield* scene.plan({ received: scene.received(1) })
    expect(plan.moves.map(({ token }) => token)).toEqual(["USDC"])
    expect(plan.leftOut).toMatchObject([{ currency: "DAI", why: expect.stringContaining("takes a fee") }])
  })
)

it.scopedLive("counts no transfer of another contract as one of the token", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    const other = someone()
    const front = yield* inFrontOf(scene.local.url, ({ method }, result) =>
      method === "eth_simulateV1"
        ? (result as ReadonlyArray<Simulated>).map(({ calls }) => ({
            calls: calls.map(({ logs, ...call }) => ({
              ...call,
              logs: logs.map((log) => ({ ...log, address: other }))
            }))
          }))
        : result
    )
    scene.change({ rpcUrls: [Redacted.make(front.url)] })
    expect(yield* refusal(scene.plan({ received: scene.received(1) }))).toContain(
      `its contract takes a fee: 0 of ${20n * usd} base units would arrive`
    )
  })
)

it.scopedLive("leaves out what is worth less than --min-usd, not just as much, and names no unused token", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 5n * usd)
    yield* scene.pay("USDT", 1, 4n * usd)
    const { plan } = yield* scene.plan({ received: scene.received(1), minUsd: BigDecimal.make(5n, 0) })
    expect(plan.moves.map(({ amount, token }) => [token, amount])).toEqual([["USDC", `${5n * usd}`]])
    expect(plan.tokens.map(({ symbol }) => symbol)).toEqual(["USDC"])
    expect(plan.leftOut).toMatchObject([{ currency: "USDT", why: "it is worth 4.00 USD, below --min-usd" }])
  })
)

it.scopedLive("leaves out a blacklisted source, an open payment, and another wallet's address", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 5, 20n * usd)
    const usdc = scene.local.tokens.USDC?.address as Address
    yield* callToken(scene.local, usdc, "blacklist", [scene.wallet.address(1)])
    const received = scene.received(5, (index) => ({
      isOpen: index === 2,
      held: [0, 3].includes(index)
        ? [{ currency: "USDC", amount: `${(index === 3 ? 30n : 5n) * usd}`, is: "exception" as const }]
        : [],
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
  })
)

it.scopedLive(
  "on an OP-stack chain leaves room for the fee of the data, with its margin, in live mode as in test",
  () =>
    Effect.gen(function* () {
      const scene = yield* collecting({ chain: "optimism", mode: "live" })
      const dataFee = 2n * 10n ** 13n
      // A contract that returns this number, whatever it is asked: PUSH32 n, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN.
      const code = `0x7f${dataFee.toString(16).padStart(64, "0")}60005260206000f3`
      yield* scene.local.rpc("anvil_setCode", ["0x420000000000000000000000000000000000000F", code])
      yield* scene.pay("ETH", 1, ether)
      const { plan } = yield* scene.plan({ received: scene.received(1) })
      expect(plan).toMatchObject({ mode: "live", dataFees: { single: `${(dataFee * 3n) / 2n}` } })
      const [move] = plan.moves
      const highest = BigInt(plan.fees.at(-1)?.most ?? 0)
      expect(BigInt(move?.amount ?? 0)).toBe(ether - BigInt(move?.gas ?? 0) * highest - (dataFee * 3n) / 2n)
      yield* scene.mining
      const { result } = yield* scene.send(yield* scene.sign(plan))
      expect(result.differences).toEqual([])
      expect(holdsExactly(result)).toBe(true)
    })
)

it.scopedLive("sees what a token refuses where a provider does not simulate, and says that it sees no fees", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 2, 20n * usd)
    const usdc = scene.local.tokens.USDC?.address as Address
    yield* callToken(scene.local, usdc, "blacklist", [scene.wallet.address(1)])
    const proxy = yield* startFaultProxy(scene.local.url)
    yield* proxy.set("noSimulation")
    scene.change({ rpcUrls: [Redacted.make(proxy.url)] })
    const { plan, seesFees } = yield* scene.plan({ received: scene.received(2) })
    expect(proxy.count("eth_simulateV1")).toBeGreaterThan(0)
    expect(seesFees).toBe(false)
    expect(plan.moves.map(({ index }) => index)).toEqual([0])
    expect(plan.leftOut).toMatchObject([{ index: 1, why: expect.stringContaining("account is blacklisted") }])
  })
)

it.scopedLive("takes it for a refusal that a transfer returns false, where a provider does not simulate too", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    const no = numberToHex(0n, { size: 32 })
    let simulates = true
    const front = yield* inFrontOf(scene.local.url, ({ method, params: [asked] }, result) => {
      const isTransfer = method === "eth_call" && JSON.stringify(asked).includes('"0xa9059cbb')
      if (method !== "eth_simulateV1") return isTransfer ? no : result
      const returning = (result as ReadonlyArray<Simulated>).map(({ calls }) => ({
        calls: calls.map((call) => ({ ...call, returnData: no }))
      }))
      return simulates ? returning : null
    })
    scene.change({ rpcUrls: [Redacted.make(front.url)] })
    const why = `There is nothing to move: its contract refuses the transfer (${scene.wallet.address(0)})`
    expect(yield* refusal(scene.plan({ received: scene.received(1) }))).toBe(why)
    simulates = false
    expect(yield* refusal(scene.plan({ received: scene.received(1) }))).toBe(why)
  })
)
