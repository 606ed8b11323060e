/** What one provider says of a broadcast by itself, and what it must not do to it. */
import { existsSync, readFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Schedule } from "effect"
import { type Collecting, collecting, holdsExactly } from "./collecting.ts"
import { type Lie, startLyingProvider } from "./lyingProvider.ts"

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
