/** What one provider says of a broadcast by itself, and what it must not do to it. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Schedule } from "effect"
import { getAddress, numberToHex } from "viem"
import { collectRefusal } from "../../src/Collect/CollectRefused.ts"
import { digested } from "../../src/Collect/Plan.ts"
import { startFaultProxy } from "../lib/faultProxy.ts"
import { type Collecting, collecting, holdsExactly, untilSaid } from "./collecting.ts"
import { type Lie, startLyingProvider } from "./lyingProvider.ts"
import { refusal } from "./refusal.ts"

const usd = 10n ** 6n
const ether = 10n ** 18n

/** An address with USDC and one with USDT, a sponsor with coin, and a provider that can lie before an honest one. */
const prepared = Effect.gen(function* () {
  const scene = yield* collecting()
  yield* scene.pay("USDC", 1, 20n * usd)
  yield* scene.pay("USDT", 1, 30n * usd, 1)
  yield* scene.local.payNative({ to: scene.sponsor, amount: ether })
  yield* scene.local.mine()
  const { plan } = yield* scene.plan({ received: scene.received(2) })
  const signed = yield* scene.sign(plan)
  const liar = yield* startLyingProvider(scene.local.url)
  const providers = (...urls: ReadonlyArray<string>) => scene.change({ rpcUrls: urls.map((url) => Redacted.make(url)) })
  providers(liar.url, scene.local.url)
  return { scene, plan, signed, liar, providers }
})

const linesOf = ({ journalPath }: Collecting): ReadonlyArray<string> =>
  existsSync(journalPath) ? readFileSync(journalPath, "utf8").split("\n").slice(0, -1) : []

const countOf = (scene: Collecting, event: string): number =>
  linesOf(scene).filter((line) => line.startsWith(`{"event":"${event}"`)).length

/** What the broadcast ends with; fails once it has said so often that a receipt is missing, as it would for ever. */
const endOf = <A, E>({ said }: Collecting, sending: Fiber.Fiber<A, E>) => {
  const isStuck = () => said.filter((text) => text.includes("eth_getTransactionReceipt")).length > 2
  const stuck = Effect.repeat(Effect.sync(isStuck), { until: (is) => is, schedule: Schedule.spaced("20 millis") })
  return Effect.raceFirst(Fiber.join(sending), Effect.zipRight(stuck, Effect.dieMessage("it adds up for ever")))
}

const inventedReceipt = (transactionHash: unknown) => ({
  ...{ transactionHash, blockHash: `0x${"fa".repeat(32)}`, blockNumber: "0x1", status: "0x1" }
})

const lastLooks: ReadonlyArray<readonly [what: string, lie: Lie]> = [
  ["another step in a block", ({ params: [hash] }, result) => result ?? inventedReceipt(hash)],
  ["that each has failed", (_, result) => (result === null ? null : { ...(result as object), status: "0x0" })]
]

it.scopedLive.each(lastLooks)("does not believe one provider that shows, of what two have confirmed, %s", ([, lie]) =>
  Effect.gen(function* () {
    const { liar, scene, signed } = yield* prepared
    let lied = 0
    yield* liar.tell((call, result) => {
      const isLast = countOf(scene, "confirmed") === signed.transactions.length
      if (call.method !== "eth_getTransactionReceipt" || !isLast) return result
      lied += 1
      return lie(call, result)
    })
    const onProgress = (text: string) => {
      scene.said.push(text)
      return text === "adding everything up" ? liar.tell() : Effect.void
    }
    yield* scene.mining
    const { result } = yield* endOf(scene, yield* Effect.fork(scene.send(signed, { onProgress })))
    expect(lied).toBeGreaterThan(0)
    expect(result.differences).toEqual([])
    expect(result.transfers).toHaveLength(2)
    expect(holdsExactly(result)).toBe(true)
    expect(countOf(scene, "confirmed")).toBe(signed.transactions.length)
    expect(linesOf(scene).at(-2)).toContain('"event":"confirmed"')
  })
)

it.scopedLive("sends again what a reorg takes out while everything is added up", () =>
  Effect.gen(function* () {
    const { providers, scene, signed } = yield* prepared
    const { local } = scene
    providers(local.url)
    const { number: before } = yield* local.head
    let isMining = true
    const mining = Effect.delay(
      Effect.suspend(() => (isMining ? local.mine() : Effect.void)),
      "100 millis"
    )
    yield* Effect.forkScoped(Effect.forever(mining))
    const onProgress = Effect.fnUntraced(function* (text: string) {
      scene.said.push(text)
      if (text !== "adding everything up") return
      isMining = false
      const { number } = yield* Effect.orDie(local.head)
      yield* Effect.orDie(local.reorg(number - before))
      isMining = true
    })
    const { result } = yield* endOf(scene, yield* Effect.fork(scene.send(signed, { onProgress })))
    expect(countOf(scene, "fell out")).toBeGreaterThan(0)
    expect(result.differences).toEqual([])
    expect(result.transfers).toHaveLength(2)
    expect(holdsExactly(result)).toBe(true)
    expect(yield* local.tokenBalance("USDC", scene.destination)).toBe(20n * usd)
    expect(yield* local.tokenBalance("USDT", scene.destination)).toBe(30n * usd)
  })
)

/** Five coins more than an address has, in each answer about coin. */
const richer: Lie = ({ method, params }, result) => {
  const more = (amount: string) => BigInt(amount) + 5n * ether
  if (method === "eth_getBalance") return numberToHex(more(result as string))
  // The code that reads the coin of many addresses at once.
  if (method !== "eth_call" || !JSON.stringify(params).includes("00ba1a9ce00ba1a9")) return result
  const words = (result as string).slice(2).match(/.{64}/g) ?? []
  return `0x${words.map((word) => more(`0x${word}`).toString(16).padStart(64, "0")).join("")}`
}

it.scopedLive("begins with the lower of what two providers say that there is", () =>
  Effect.gen(function* () {
    const { liar, scene, signed } = yield* prepared
    yield* scene.mining
    let told = 0
    yield* liar.tell((call, result) => {
      const lie = countOf(scene, "begun") === 0 ? richer(call, result) : result
      if (lie !== result) told += 1
      return lie
    })
    const { result } = yield* scene.send(signed)
    expect(told).toBeGreaterThan(0)
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    expect(result.totals.find(({ currency }) => currency === "ETH")?.before).toBe(`${ether}`)
  })
)

const refusedByOne: ReadonlyArray<readonly [what: string, lie: Lie, said: string]> = [
  [
    "a nonce has moved",
    ({ method }, result) => (method === "eth_getTransactionCount" ? "0x9" : result),
    "is 9, and 0 was signed"
  ],
  [
    "something was sent",
    ({ method, params: [hash] }, result) => (method === "eth_getTransactionReceipt" ? inventedReceipt(hash) : result),
    "Some of it was sent already"
  ],
  [
    "authorizations end",
    ({ method }, result) =>
      method === "eth_getBlockByNumber" ? { ...(result as object), timestamp: "0xffffffff" } : result,
    "authorizations end, or have ended"
  ]
]

it.scopedLive.each(refusedByOne)(
  "does not tell to make a new plan where one provider alone says that %s",
  ([, lie, said]) =>
    Effect.gen(function* () {
      const { liar, scene, signed } = yield* prepared
      yield* liar.tell(lie)
      const told = yield* scene.refused(signed)
      expect(told).toContain("providers differ: ")
      expect(told).toContain(said)
      expect(told).toContain("Remedy: look in a block explorer which one is wrong")
      expect(existsSync(scene.journalPath)).toBe(false)
      // One that differs once, as when something is mined between the two.
      let isTold = false
      yield* liar.tell((call, result) => {
        const lied = isTold ? result : lie(call, result)
        isTold ||= lied !== result
        return lied
      })
      yield* scene.mining
      expect((yield* scene.send(signed)).result.differences).toEqual([])
      expect(isTold).toBe(true)
    })
)

it.scopedLive("begins nothing while the second provider does not answer", () =>
  Effect.gen(function* () {
    const { providers, scene, signed } = yield* prepared
    const proxy = yield* startFaultProxy(scene.local.url)
    yield* proxy.set("drop")
    providers(scene.local.url, proxy.url)
    expect(yield* scene.refused(signed)).toContain("no other provider of rpc_urls answers")
    expect(existsSync(scene.journalPath)).toBe(false)
  })
)

const refundOf = ({ wallet }: Collecting) => ({
  ...{ id: "exc_5", address: wallet.address(1), index: 1, currency: "USDT", amount: 5n * usd }
})

it.scopedLive("checks a refund that one provider alone shows as sent, and none that was sent", () =>
  Effect.gen(function* () {
    const { liar, providers, scene } = yield* prepared
    const { plan } = yield* scene.plan({ refunds: [refundOf(scene)] })
    const signed = yield* scene.sign(plan)
    // Ended before the refund was sent: its gas is under way.
    const first = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, first, "1 of 2 transactions sent")
    yield* Fiber.interrupt(first)
    const asked: Array<ReadonlyArray<string>> = []
    const closed = (unpaid: ReadonlyArray<{ readonly id: string }>) => {
      asked.push(unpaid.map(({ id }) => id))
      return unpaid.length === 0
        ? Effect.as(liar.tell(), { notOwed: new Map(), held: new Map() })
        : collectRefusal("exc_5 is closed")
    }
    yield* liar.tell(({ method, params: [hash] }, result) =>
      method === "eth_getTransactionReceipt" ? inventedReceipt(hash) : result
    )
    yield* scene.mining
    expect(yield* refusal(scene.send(signed, {}, closed))).toBe("exc_5 is closed")
    expect(asked).toEqual([["exc_5"]])
    expect(yield* scene.local.tokenBalance("USDT", scene.destination)).toBe(0n)
    yield* liar.tell()
    expect((yield* scene.send(signed)).result.differences).toEqual([])
    expect(yield* scene.local.tokenBalance("USDT", scene.destination)).toBe(5n * usd)
    const without = (...events: ReadonlyArray<string>) => {
      const left = linesOf(scene).filter((line) => !events.some((event) => line.startsWith(`{"event":"${event}"`)))
      writeFileSync(scene.journalPath, `${left.join("\n")}\n`)
    }
    // Both show it, and the journal does not; then the journal has it, and one hides it.
    asked.length = 0
    without("finished", "confirmed")
    expect((yield* scene.send(signed, {}, closed)).result.differences).toEqual([])
    without("finished")
    providers(scene.local.url, liar.url)
    yield* liar.tell(({ method }, result) => (method === "eth_getTransactionReceipt" ? null : result))
    expect((yield* scene.send(signed, {}, closed)).result.differences).toEqual([])
    expect(asked).toEqual([[], []])
  })
)

it.scopedLive("goes on with a refund only while two providers say how it stands", () =>
  Effect.gen(function* () {
    const { providers, scene } = yield* prepared
    const proxy = yield* startFaultProxy(scene.local.url)
    providers(scene.local.url, proxy.url)
    const { plan } = yield* scene.plan({ refunds: [refundOf(scene)] })
    const signed = yield* scene.sign(plan)
    const first = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, first, "1 of 2 transactions sent")
    yield* Fiber.interrupt(first)
    yield* proxy.set("drop")
    expect(yield* scene.refused(signed)).toContain("no other provider of rpc_urls answers")
    yield* proxy.set()
    yield* scene.mining
    expect((yield* scene.send(signed)).result.differences).toEqual([])
  })
)

it.scopedLive("checks a refund again that fell out of its block once it was confirmed", () =>
  Effect.gen(function* () {
    const { providers, scene } = yield* prepared
    const { local } = scene
    providers(local.url)
    const { plan } = yield* scene.plan({ refunds: [refundOf(scene)] })
    const signed = yield* scene.sign(plan)
    // One more than is taken out: a block may come while that is done.
    const { number } = yield* local.head
    yield* local.mine(2)
    const mining = yield* Effect.forkScoped(Effect.forever(Effect.delay(local.mine(), "100 millis")))
    expect((yield* scene.send(signed)).result.differences).toEqual([])
    yield* Fiber.interrupt(mining)
    yield* local.reorg((yield* local.head).number - number)
    // As a broadcast leaves it that was ended once it had seen this.
    const lines = linesOf(scene).filter((line) => !line.startsWith('{"event":"finished"'))
    const fellOut = lines.filter((line) => line.startsWith('{"event":"confirmed"'))
    expect(fellOut).toHaveLength(2)
    const added = fellOut.map((line) => line.replace("confirmed", "fell out"))
    writeFileSync(scene.journalPath, `${[...lines, ...added].join("\n")}\n`)
    let asked: ReadonlyArray<string> = []
    const closed = (unpaid: ReadonlyArray<{ readonly id: string }>) => {
      asked = unpaid.map(({ id }) => id)
      return collectRefusal("exc_5 is closed")
    }
    expect(yield* refusal(scene.send(signed, {}, closed))).toBe("exc_5 is closed")
    expect(asked).toEqual(["exc_5"])
  })
)

it.scopedLive("notes what was collected by the addresses that payments have, whatever the plan's case", () =>
  Effect.gen(function* () {
    const { plan, scene } = yield* prepared
    const { digest: _, words: __, ...unsigned } = plan
    const lower = digested({
      ...unsigned,
      destination: plan.destination.toLowerCase(),
      moves: plan.moves.map((move) => ({ ...move, address: move.address.toLowerCase() }))
    })
    yield* scene.mining
    const { result } = yield* scene.send(yield* scene.sign(lower))
    expect(result.differences).toEqual([])
    expect(result.transfers.map(({ address, to }) => [address, to])).toEqual(
      [0, 1].map((index) => [scene.wallet.address(index), getAddress(scene.destination)])
    )
  })
)
