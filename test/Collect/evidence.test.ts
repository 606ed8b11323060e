import { readFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Runtime, Schedule } from "effect"
import { type Hex, keccak256, numberToHex, size, toEventSelector } from "viem"
import { collecting, holdsExactly, untilSaid } from "./collecting.ts"
import { inFrontOf } from "./inFront.ts"

const usd = 10n ** 6n
const ether = 10n ** 18n

/** Three addresses with USDC, and a sponsor with coin. */
const funded = Effect.fnUntraced(function* (chain: "base" | "ethereum" = "ethereum") {
  const scene = yield* collecting({ chain })
  yield* scene.pay("USDC", 3, 20n * usd)
  yield* scene.local.payNative({ to: scene.sponsor, amount: ether })
  yield* scene.local.mine()
  return scene
})

const signed = Effect.fnUntraced(function* (scene: Effect.Effect.Success<ReturnType<typeof funded>>) {
  const { plan } = yield* scene.plan({ received: scene.received(3) })
  expect(new Set(plan.moves.map(({ way }) => way))).toEqual(new Set(["authorization"]))
  return yield* scene.sign(plan)
})

it.scopedLive("has each transaction in its journal before a provider gets it", () =>
  Effect.gen(function* () {
    const scene = yield* funded()
    yield* scene.pay("USDT", 1, 30n * usd, 3)
    const { plan } = yield* scene.plan({ received: scene.received(4) })
    const sealed = yield* scene.sign(plan)
    const noted: Array<boolean> = []
    const front = yield* inFrontOf(scene.local.url, ({ method, params: [raw] }, result) => {
      if (method === "eth_sendRawTransaction") {
        const sending = readFileSync(scene.journalPath, "utf8")
          .split("\n")
          .filter((line) => line.includes('"event":"sending"'))
        noted.push(sending.some((line) => line.includes(keccak256(raw as Hex))))
      }
      return result
    })
    scene.change({ rpcUrls: [Redacted.make(front.url)] })
    yield* scene.mining
    const { result } = yield* scene.send(sealed)
    expect(result.differences).toEqual([])
    expect(noted.length).toBeGreaterThanOrEqual(sealed.transactions.length)
    expect(noted).not.toContain(false)
  })
)

it.scopedLive("waits for a second provider that has not seen a transaction, however deep it is by the first", () =>
  Effect.gen(function* () {
    const scene = yield* funded()
    const sealed = yield* signed(scene)
    let isBehind = true
    const second = yield* inFrontOf(scene.local.url, ({ method }, result) =>
      method === "eth_getTransactionReceipt" && isBehind ? null : result
    )
    scene.change({ rpcUrls: [Redacted.make(scene.local.url), Redacted.make(second.url)] })
    yield* scene.mining
    const sending = yield* Effect.fork(scene.send(sealed))
    yield* untilSaid(scene, sending, "1 of 1 transactions sent, 1 in a block")
    const { number } = yield* scene.local.head
    yield* Effect.repeat(scene.local.head, {
      until: (head) => head.number >= number + 20,
      schedule: Schedule.spaced("50 millis")
    })
    expect(readFileSync(scene.journalPath, "utf8")).toContain('"event":"mined"')
    expect(readFileSync(scene.journalPath, "utf8")).not.toContain('"event":"confirmed"')
    isBehind = false
    const { result } = yield* Fiber.join(sending)
    expect(result.differences).toEqual([])
    expect(readFileSync(scene.journalPath, "utf8")).toContain('"event":"confirmed"')
  })
)

it.scopedLive("counts no authorization as done by a transfer without the token's event of its use", () =>
  Effect.gen(function* () {
    const scene = yield* funded()
    const sealed = yield* signed(scene)
    const used = toEventSelector("AuthorizationUsed(address,bytes32)")
    const front = yield* inFrontOf(scene.local.url, ({ method }, result) => {
      if (method !== "eth_getTransactionReceipt" || result === null) return result
      const { logs, ...receipt } = result as { readonly logs: ReadonlyArray<{ readonly topics: ReadonlyArray<Hex> }> }
      return { ...receipt, logs: logs.filter(({ topics: [kind] }) => kind !== used) }
    })
    scene.change({ rpcUrls: [Redacted.make(front.url)] })
    yield* scene.mining
    const { result } = yield* scene.send(sealed)
    expect(result.transfers).toEqual([])
    const missing = result.differences.filter(({ why }) =>
      why.startsWith("its authorization was carried out otherwise")
    )
    expect(missing.map(({ address }) => address)).toEqual([0, 1, 2].map(scene.wallet.address))
  })
)

it.scopedLive("shows as a difference what is missing by the second provider alone", () =>
  Effect.gen(function* () {
    const scene = yield* funded()
    const sealed = yield* signed(scene)
    let hasBegun = false
    const second = yield* inFrontOf(scene.local.url, ({ method, params: [, , overrides] }, result) => {
      hasBegun ||= method === "eth_getTransactionReceipt" && result !== null
      // A word for each address, the sponsor's last.
      return hasBegun && method === "eth_call" && overrides !== undefined
        ? numberToHex(BigInt(result as Hex) - 7n, { size: size(result as Hex) })
        : result
    })
    scene.change({ rpcUrls: [scene.local.url, second.url].map((url) => Redacted.make(url)) })
    yield* scene.mining
    const { result } = yield* scene.send(sealed)
    expect(result.transfers).toHaveLength(3)
    expect(result.differences).toEqual([
      { address: scene.sponsor, currency: "ETH", amount: "7", why: "something else took it from there" }
    ])
  })
)

it.scopedLive("accounts for the fee of data that a chain takes on top of the gas", () =>
  Effect.gen(function* () {
    const scene = yield* funded("base")
    const sealed = yield* signed(scene)
    const dataFee = 1_000n
    const run = Runtime.runPromise(yield* Effect.runtime())
    const front = yield* inFrontOf(scene.local.url, async ({ method, params: [, block, overrides] }, result) => {
      if (method === "eth_getTransactionReceipt" && result !== null) {
        return { ...(result as object), l1Fee: numberToHex(dataFee) }
      }
      if (method !== "eth_call" || overrides === undefined) return result
      // What each of the sponsor's transactions so far has cost on top. Its balance is the last word.
      const sent = await run(scene.local.rpc<Hex>("eth_getTransactionCount", [scene.sponsor, block]))
      return numberToHex(BigInt(result as Hex) - BigInt(sent) * dataFee, { size: size(result as Hex) })
    })
    scene.change({ rpcUrls: [Redacted.make(front.url)] })
    yield* scene.mining
    const { result } = yield* scene.send(sealed)
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    const receipt = yield* scene.local.rpc<{ readonly gasUsed: Hex; readonly effectiveGasPrice: Hex }>(
      "eth_getTransactionReceipt",
      [result.transfers[0]?.hash]
    )
    expect(result.totals.find(({ currency }) => currency === "ETH")).toMatchObject({
      gas: `${BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice) + dataFee}`,
      cameMeanwhile: "0"
    })
  })
)
