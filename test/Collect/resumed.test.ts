/** A broadcast that was ended on its way, and what has happened before it goes on. */
import { chownSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Redacted } from "effect"
import { type Address, type Hex, numberToHex } from "viem"
import { authorizedCall } from "../../src/Collect/authorization.ts"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import { type Signed, signatureOf } from "../../src/Collect/Signed.ts"
import { authorizationsOf } from "../../src/Collect/transactions.ts"
import { iso } from "../../src/lib/moment.ts"
import { type Collecting, collecting, holdsExactly, someone, untilSaid, untilTrue } from "./collecting.ts"
import { startLyingProvider } from "./lyingProvider.ts"
import { refusal } from "./refusal.ts"

const usd = 10n ** 6n
const ether = 10n ** 18n

const linesOf = ({ journalPath }: Collecting) => readFileSync(journalPath, "utf8").split("\n").slice(0, -1)

/** Sends from the sponsor without its key, as another wallet of the same seed would. */
const spend = ({ local, sponsor }: Collecting) =>
  Effect.gen(function* () {
    yield* local.rpc("anvil_impersonateAccount", [sponsor])
    yield* local.rpc("eth_sendTransaction", [{ from: sponsor, to: someone(), value: "0x1" }])
  })

/** Two addresses with USDT, whose gas the sponsor sends in two transactions. */
const twoFunded = Effect.gen(function* () {
  const scene = yield* collecting()
  yield* scene.pay("USDT", 2, 20n * usd)
  yield* scene.fund
  const { plan } = yield* scene.plan({ received: scene.received(2) })
  return { scene, plan, signed: yield* scene.sign(plan) }
})

it.scopedLive("accounts for what was sent where something else has used the sponsor's next nonce", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* twoFunded
    const first = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, first, "2 of 4 transactions sent")
    yield* Fiber.interrupt(first)
    const second = linesOf(scene).find((line) => line.includes('"event":"sending","place":2'))
    yield* scene.local.rpc("anvil_dropTransaction", [/0x[0-9a-f]{64}/.exec(second ?? "")?.[0]])
    yield* spend(scene)
    yield* scene.local.mine()
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect(result.transfers).toMatchObject([{ address: scene.wallet.address(0), amount: `${20n * usd}` }])
    expect(result.differences).toMatchObject([
      { address: scene.wallet.address(1), amount: `${20n * usd}`, why: expect.stringContaining("was given up") },
      { address: scene.sponsor, currency: "ETH", why: "something else took it from there" }
    ])
    expect(yield* scene.local.tokenBalance("USDT", scene.destination)).toBe(20n * usd)
  })
)

const refundAt = ({ wallet }: Collecting, currency: string, index: number) => ({
  ...{ id: `exc_${index}`, address: wallet.address(index), index, currency, amount: 5n * usd }
})

/** A refund in USDC, which the sponsor carries out, and one in USDT, whose gas it sends after that. */
const refunding = Effect.gen(function* () {
  const scene = yield* collecting()
  yield* scene.pay("USDC", 1, 20n * usd)
  yield* scene.pay("USDT", 2, 30n * usd, 1)
  yield* scene.fund
  const refunds = ["USDC", "USDT", "USDT"].map((currency, index) => refundAt(scene, currency, index))
  const { plan } = yield* scene.plan({ refunds })
  return { scene, signed: yield* scene.sign(plan) }
})

/** As it is left by what was ended before anything was sent. */
const onlyBegun = ({ scene, signed }: { readonly scene: Collecting; readonly signed: Signed }) =>
  Effect.gen(function* () {
    const first = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, first, "transactions sent")
    yield* Fiber.interrupt(first)
    yield* scene.local.rpc("anvil_dropAllTransactions")
    writeFileSync(scene.journalPath, `${linesOf(scene)[0]}\n`)
  })

const sentBy = ({ local }: Collecting, address: string) =>
  Effect.map(local.rpc<Hex>("eth_getTransactionCount", [address, "latest"]), Number)

const asked = (...notOwed: ReadonlyArray<string>) =>
  Effect.succeed({ notOwed: new Map(notOwed.map((id) => [id, `${id} is closed`])), held: new Map() })

it.scopedLive("sends no refund that is no longer owed, nor what would wait for its nonce", () =>
  Effect.gen(function* () {
    const all = yield* refunding
    const { scene, signed } = all
    yield* onlyBegun(all)
    yield* scene.mining
    const { result } = yield* scene.send(signed, {}, () => asked("exc_0"))
    expect(result.transfers).toEqual([])
    expect(result.differences.map(({ currency }) => currency)).toEqual(["USDC", "USDT", "USDT"])
    expect(yield* sentBy(scene, scene.sponsor)).toBe(0)
    // Its gas is sent, which keeps the sponsor's nonces in order, and the refund itself is not.
    const { result: second } = yield* scene.send(signed, {}, () => asked("exc_1"))
    expect(second.transfers.map(({ refund }) => refund)).toEqual(["exc_0", "exc_2"])
    expect(second.differences).toMatchObject([{ address: scene.wallet.address(1), currency: "USDT" }])
    expect(yield* sentBy(scene, scene.sponsor)).toBe(3)
    expect(yield* sentBy(scene, scene.wallet.address(1))).toBe(0)
    const { result: third } = yield* scene.send(signed)
    expect(third.differences).toEqual([])
    expect(holdsExactly(third)).toBe(true)
    expect(yield* scene.local.tokenBalance("USDT", scene.destination)).toBe(10n * usd)
  })
)

it.scopedLive("counts a refund that is no longer owed where it was sent all the same", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* refunding
    const first = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, first, "3 of 5 transactions sent")
    yield* Fiber.interrupt(first)
    yield* scene.mining
    const { result } = yield* scene.send(signed, {}, (unpaid) =>
      Effect.zipRight(Effect.orDie(scene.local.mine(2)), asked(...unpaid.map(({ id }) => id)))
    )
    expect(result.transfers.map(({ refund }) => refund)).toContain("exc_0")
    expect(yield* scene.local.tokenBalance("USDC", scene.destination)).toBe(5n * usd)
  })
)

it.scopedLive("warns of what was sent and not made, and can be made still", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* refunding
    const first = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, first, "3 of 5 transactions sent")
    yield* Fiber.interrupt(first)
    yield* scene.local.rpc("anvil_dropAllTransactions")
    const whys = (...notOwed: ReadonlyArray<string>) =>
      Effect.map(
        scene.send(signed, {}, () => asked(...notOwed)),
        ({ result }) => result.differences.map(({ why }) => why)
      )
    const given = "it was not moved: its transaction failed, or was given up"
    const until = iso(signed.plan.validBefore * 1000)
    expect(yield* whys("exc_0", "exc_1", "exc_2")).toEqual([
      `${given}; it was sent, and may still be made until ${until}: do not pay it otherwise before`,
      given,
      given
    ])
    scene.said.length = 0
    const second = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, second, "3 of 5 transactions sent")
    yield* scene.local.mine()
    yield* untilSaid(scene, second, "5 of 5 transactions sent")
    yield* Fiber.interrupt(second)
    // Under way, which no other plan takes for nothing.
    const planned = scene.plan({ refunds: [{ ...refundAt(scene, "USDT", 1), id: "exc_9" }] })
    expect(yield* refusal(planned)).toContain(`${scene.wallet.address(1)} has a transaction under way`)
    expect(yield* scene.refused(signed, { journalPath: `${scene.journalPath}.copy` })).toContain("Some of it was sent")
    yield* scene.local.rpc("anvil_dropAllTransactions")
    yield* scene.mining
    const warned = `${given}; it was sent, and may still be made: do not pay it otherwise before`
    expect(yield* whys("exc_1", "exc_2")).toEqual([warned, warned])
  })
)

it.scopedLive("begins no plan with a nonce that is under way", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* twoFunded
    yield* spend(scene)
    expect(yield* scene.refused(signed)).toContain(`The next nonce of ${scene.sponsor} is 1, and 0 was signed`)
  })
)

it.scopedLive("sends no authorizations that have ended, and nothing after them", () =>
  Effect.gen(function* () {
    const all = yield* refunding
    const { scene, signed } = all
    yield* onlyBegun(all)
    yield* scene.local.rpc("evm_increaseTime", [24 * 3600])
    yield* scene.local.mine()
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect(result.differences.map(({ currency }) => currency)).toEqual(["USDC", "USDT", "USDT"])
    expect(yield* sentBy(scene, scene.sponsor)).toBe(0)
  })
)

it.scopedLive("sends nothing that is withheld because one provider shows it for a while", () =>
  Effect.gen(function* () {
    const all = yield* refunding
    const { scene, signed } = all
    yield* onlyBegun(all)
    const liar = yield* startLyingProvider(scene.local.url)
    scene.change({ rpcUrls: [liar.url, scene.local.url].map((url) => Redacted.make(url)) })
    const shown = { blockHash: `0x${"fa".repeat(32)}`, blockNumber: "0x1", status: "0x1" }
    let lies = 0
    yield* liar.tell(({ method, params: [transactionHash] }, result) => {
      // Once its beginning was read.
      if (method !== "eth_getTransactionReceipt" || !scene.said.includes("begun again") || lies === 3) return result
      lies += 1
      return { ...shown, transactionHash }
    })
    yield* scene.mining
    const { result } = yield* scene.send(signed, {}, (unpaid) => {
      scene.said.push("begun again")
      return asked(...unpaid.map(({ id }) => id))
    })
    expect([lies, scene.said.some((text) => text.includes("it is no longer owed"))]).toEqual([3, true])
    expect(result.differences).toHaveLength(3)
    expect(yield* sentBy(scene, scene.sponsor)).toBe(0)
  })
)

it.scopedLive("adds up where a reorg takes back what somebody else had carried out before", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    yield* scene.fund
    const { plan } = yield* scene.plan({ received: scene.received(1) })
    const signed = yield* scene.sign(plan)
    const [one] = authorizationsOf(plan)
    if (one === undefined) return expect.fail()
    const data = authorizedCall(one.message, signatureOf(signed.authorizations[0] ?? ""))
    yield* scene.local.send({ to: one.token.contract as Address, data })
    yield* scene.local.mine()
    const sending = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, sending, "1 of 1 transactions sent")
    yield* scene.local.reorg(1)
    yield* scene.mining
    const { result } = yield* Fiber.join(sending)
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    expect(result.totals.find(({ currency }) => currency === "USDC")).toMatchObject({
      ...{ before: `${20n * usd}`, received: `${20n * usd}`, stayed: "0", cameMeanwhile: "0" }
    })
  })
)

it.scopedLive("replaces what is stuck also where the clock was set back", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* twoFunded
    const usual = yield* Clock.clockWith(Effect.succeed)
    let behind = 0
    const shifted: Clock.Clock = {
      ...usual,
      currentTimeMillis: Effect.map(usual.currentTimeMillis, (now) => now - behind),
      unsafeCurrentTimeMillis: () => usual.unsafeCurrentTimeMillis() - behind
    }
    const sending = yield* Effect.fork(
      Effect.withClock(
        scene.send(signed, { patience: Duration.hours(1) }),
        Object.assign(Object.create(usual), shifted)
      )
    )
    yield* untilSaid(scene, sending, "2 of 4 transactions sent")
    behind = Duration.toMillis("1 day")
    yield* untilTrue(sending, () =>
      linesOf(scene).some((line) => line.includes('"event":"sending","place":0,"step":1'))
    )
    yield* scene.mining
    expect((yield* Fiber.join(sending)).result.differences).toEqual([])
  })
)

const forged = (digest: string): SweepResult => ({ digest, transfers: [], totals: [], differences: [] })

it.scopedLive("believes no account without its beginning, nor one that is none", () =>
  Effect.gen(function* () {
    const { plan, scene, signed } = yield* twoFunded
    const finished = (result: unknown) => JSON.stringify({ event: "finished", at: 1, result })
    writeFileSync(scene.journalPath, `${finished(forged(plan.digest))}\n`)
    expect(yield* scene.refused(signed)).toContain("is the journal of another signed file")
    const begun = JSON.stringify({ event: "begun", at: 1, checksum: signed.checksum, left: [], block: 1, before: {} })
    const totals = [{ currency: "USDC", decimals: 6, before: "much", received: "0", gas: "0", stayed: "0" }]
    for (const result of [null, {}, { ...forged(plan.digest), totals }]) {
      writeFileSync(scene.journalPath, `${begun}\n${finished(result)}\n`)
      expect(yield* scene.refused(signed)).toContain(`Line 2 of ${scene.journalPath} is damaged`)
    }
    writeFileSync(scene.journalPath, `${begun.replace("{}", '{"ETH 0x":"much"}')}\n`)
    expect(yield* scene.refused(signed)).toContain("Line 1 of")
    expect(yield* sentBy(scene, scene.sponsor)).toBe(0)
  })
)

it.scopedLive.skipIf(process.geteuid?.() !== 0)("believes no journal of another user [needs root]", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* twoFunded
    writeFileSync(scene.journalPath, "", { mode: 0o666 })
    chownSync(scene.journalPath, 65_534, 65_534)
    expect(yield* refusal(scene.send(signed))).toContain("it is another user's: run this as that user")
    expect(existsSync(scene.journalPath)).toBe(true)
    expect(statSync(scene.journalPath)).toMatchObject({ uid: 65_534, size: 0 })
    expect(yield* scene.local.balance(scene.sponsor as Address)).toBe(ether)
    expect(numberToHex(yield* sentBy(scene, scene.sponsor))).toBe("0x0")
  })
)
