/** What a plan and a broadcast leave alone, by name, while the rest is moved. */
import { existsSync, readFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Address } from "viem"
import { accessTo } from "../../src/Chains/providers/chainAccess.ts"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import { type PlannedRefund, uncovered } from "../../src/Collect/candidates.ts"
import { holdingKey } from "../../src/Collect/holdings.ts"
import type { Plan } from "../../src/Collect/Plan.ts"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import { pay, rows } from "../lib/daemon.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"
import { tilldAtTerminal } from "./atTerminal.ts"
import { type Collecting, collecting, holdsExactly, someone } from "./collecting.ts"
import { inFrontOf } from "./inFront.ts"
import { refusal } from "./refusal.ts"
import { eventually, network, onceDeep, openShop } from "./shop.ts"

const usd = 10n ** 6n
const ether = 10n ** 18n

/** Pays USDC to an address of the wallet, in a block of its own. */
const brought = ({ local, wallet }: Collecting, index: number, units: bigint) =>
  Effect.gen(function* () {
    const address = wallet.address(index) as Address
    yield* local.payToken({ symbol: "USDC", to: address, amount: units })
    yield* local.mine()
    const refund: PlannedRefund = { id: `exc_${units}`, address, index, currency: "USDC", amount: units }
    return refund
  })

it.scopedLive("plans no refund that is not decided on yet, nor one whose money is gone by one of two providers", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    const one = yield* brought(scene, 0, 20n * usd)
    yield* scene.fund
    yield* scene.local.mine(2)
    const why = "the money of exc_1 has 1 of the 4 confirmations"
    expect(yield* refusal(scene.plan({ refunds: [{ ...one, undecidable: why }] }))).toBe(`${one.id} waits: ${why}`)
    const more = { ...one, amount: one.amount + 1n }
    expect(yield* refusal(scene.plan({ refunds: [more] }))).toContain("is 20.000001 USDC")
    expect((yield* scene.plan({ refunds: [one] })).plan.moves).toHaveLength(1)
  })
)

it.scopedLive("pays no refund out of what counts for a payment", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    const invented = yield* brought(scene, 0, 20n * usd)
    yield* scene.fund
    yield* scene.local.mine(2)
    const refund = { ...invented, amount: 5n * usd, kept: 15n * usd + 1n }
    expect(yield* refusal(scene.plan({ refunds: [refund] }))).toContain("has 4.999999 for it")
    expect((yield* scene.plan({ refunds: [{ ...refund, kept: 15n * usd }] })).plan.moves).toHaveLength(1)
    const both = [refund, { ...refund, id: "exc_2", amount: 5n * usd + 1n }].map((one) => ({ ...one, kept: 10n * usd }))
    expect(yield* refusal(scene.plan({ refunds: both }))).toContain("exc_2 is 5.000001 USDC")
  })
)

it.scopedLive("takes no gas of a refund out of the coin at its address", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    const { local, wallet } = scene
    const address = wallet.address(0) as Address
    yield* scene.pay("ETH", 1, ether + ether / 50n)
    yield* scene.pay("USDT", 1, 20n * usd)
    yield* scene.fund
    yield* local.mine(2)
    const refund = (id: string, currency: string, amount: bigint): PlannedRefund => ({
      ...{ id, address, index: 0, currency, amount },
      kept: currency === "ETH" ? ether : 0n
    })
    const refunds = [refund("exc_1", "USDT", 20n * usd), refund("exc_2", "ETH", ether / 50n)]
    const signed = yield* scene.sign((yield* scene.plan({ refunds })).plan)
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect([result.transfers.length, result.differences, holdsExactly(result)]).toEqual([2, [], true])
    expect(yield* local.balance(address)).toBeGreaterThanOrEqual(ether)
    expect(yield* local.balance(scene.destination)).toBe(ether / 50n)
    expect(yield* local.tokenBalance("USDT", scene.destination)).toBe(20n * usd)
  })
)

it.scopedLive("sends a batch without the refund whose money a reorg took", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    const first = yield* brought(scene, 0, 20n * usd)
    yield* scene.fund
    const second = yield* brought(scene, 1, 5n * usd)
    yield* scene.local.mine()
    const refunds = [first, second]
    const { plan } = yield* scene.plan({ refunds })
    const signed = yield* scene.sign(plan)
    yield* scene.local.reorg(2)
    yield* scene.local.mine(3)
    yield* scene.mining
    const check = Effect.flatMap(accessTo(scene.settings(), plan), (access) => uncovered(access, refunds)).pipe(
      Effect.provide(Rpc.layer),
      Effect.orDie,
      Effect.map((notOwed) => ({ notOwed, held: new Map() }))
    )
    const { result } = yield* scene.send(signed, {}, () => check)
    expect(result.transfers.map(({ refund }) => refund)).toEqual([first.id])
    expect(result.differences).toMatchObject([{ address: second.address, why: "it was left out" }])
    expect(scene.said).toContainEqual(expect.stringMatching(new RegExp(`^${second.id} .*It is left out$`)))
    expect(yield* scene.local.tokenBalance("USDC", scene.destination)).toBe(20n * usd)
  })
)

it.scopedLive("sends the others of a batch and of a plan where one address has to keep what it has", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 3, 20n * usd)
    yield* scene.pay("USDT", 2, 30n * usd, 3)
    yield* scene.fund
    const { plan } = yield* scene.plan({ received: scene.received(5) })
    const signed = yield* scene.sign(plan)
    const held = (...indexes: ReadonlyArray<number>) =>
      new Map(
        indexes.map((index) => {
          const currency = index < 3 ? "USDC" : "USDT"
          return [holdingKey(currency, scene.wallet.address(index)), { amount: 1n, why: `it is ${index}` }]
        })
      )
    const sending = (...indexes: ReadonlyArray<number>) =>
      scene.send(signed, {}, () => Effect.succeed({ notOwed: new Map(), held: held(...indexes) }))
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
    expect(holdsExactly(result)).toBe(true)
    // The same account again.
    expect((yield* scene.send(signed)).result).toEqual(result)
  })
)

it.scopedLive(
  "collects all that was planned, whatever a payer sends to the addresses meanwhile, and leaves that",
  () =>
    Effect.gen(function* () {
      const { chain, config, file, paid, plan, sign } = yield* openShop()
      const [one, other] = yield* Effect.all([paid("USDC", 25n * usd), paid("USDC", 30n * usd)], {
        concurrency: "unbounded"
      })
      const destination = someone()
      yield* plan("plan.json", "--to", destination)
      yield* sign("plan.json")
      yield* chain.payToken({ symbol: "DAI", to: one.address as Address, amount: 1n })
      yield* chain.payToken({ symbol: "USDC", to: other.address as Address, amount: 7n * usd })
      const command = ["sweep", "broadcast", file("plan.json.signed"), ...config]
      expect((yield* tilldJson<SweepResult>(command)).differences).toEqual([])
      expect(yield* chain.tokenBalance("USDC", destination)).toBe(55n * usd)
      expect(yield* chain.tokenBalance("USDC", other.address as Address)).toBe(7n * usd)
    }),
  40_000
)

it.scopedLive(
  "asks before it plans a refund whose gas costs more than it pays",
  () =>
    Effect.gen(function* () {
      const { chain, config, daemon, exceptions, file, home, paid } = yield* openShop()
      const { address } = yield* paid("USDT", 25n * usd)
      yield* daemon.create({ chain: "ethereum", currency: "DAI", amount: "1000" })
      yield* chain.payToken({ symbol: "USDT", to: address as Address, amount: 10_000n })
      const [open] = yield* eventually(exceptions, (all) => all.length > 0)
      const command = (name: string, ...more: ReadonlyArray<string>) => [
        ...["sweep", "plan", ...network, "--refund", open?.id ?? "", "--to", someone(), "-o", file(name)],
        ...[...more, ...config]
      ]
      const said = new RegExp(`${open?.id}: it is worth 0.01 USD, and its gas costs \\d+\\.\\d\\d`)
      const refused = yield* onceDeep(command("json", "--json"))
      expect([refused.code, existsSync(file("json"))]).toEqual([2, false])
      expect(refused.stderr).toMatch(said)
      expect(refused.stderr).toContain("--below-gas plans it all the same")
      const no = yield* tilldAtTerminal(home.folder, command("no"), [["(yes/no)? ", "no"]])
      expect([no.code, existsSync(file("no"))]).toEqual([2, false])
      const yes = yield* tilldAtTerminal(home.folder, command("yes"), [["(yes/no)? ", "yes"]])
      expect([yes.code, yes.stderr]).toEqual([0, expect.stringMatching(said)])
      const { code, stderr } = yield* tilld(command("flag", "--below-gas"))
      expect([code, stderr]).toEqual([0, expect.stringMatching(said)])
    }),
  40_000
)

it.scopedLive(
  "plans no refund of what one of two providers alone has, unless a flag says so",
  () =>
    Effect.gen(function* () {
      const hidden = new Map<string, unknown>([
        ["eth_getTransactionReceipt", null],
        ["eth_getLogs", []]
      ])
      const second = (url: string) =>
        inFrontOf(url, ({ method }, result) => (hidden.has(method) ? hidden.get(method) : result))
      const { chain, config, daemon, exceptions, file, home } = yield* openShop({ second, other: "base" })
      // While it is open, the chain is read.
      yield* daemon.create({ chain: "ethereum", currency: "DAI", amount: "1000" })
      const payment = yield* daemon.create({ chain: "base", currency: "USDC", amount: "1000" })
      yield* chain.payToken({ symbol: "USDC", to: payment.address as Address, amount: 20n * usd })
      yield* eventually(rows(home, "SELECT 1 FROM receipts"), ({ length }) => length > 0)
      yield* daemon.call("POST", `/v1/payments/${payment.id}/cancel`, {})
      const [open] = yield* eventually(exceptions, ({ length }) => length > 0)
      const command = (...more: ReadonlyArray<string>) => [
        ...["sweep", "plan", ...network, "--refund", open?.id ?? "", "--to", someone(), "-o", file("plan")],
        ...[...more, ...config]
      ]
      const refused = yield* eventually(tilld(command()), ({ stderr }) => !stderr.includes("confirmations"))
      expect([refused.code, existsSync(file("plan"))]).toEqual([1, false])
      expect(refused.stderr).toContain(`No second provider of ethereum.test has the money of ${open?.id}`)
      expect(yield* tilldJson(command("--uncorroborated"))).toMatchObject({ moves: 1 })
    }),
  40_000
)

it.scopedLive(
  "takes what waits at an address that is named, and leaves what waits at another",
  () =>
    Effect.gen(function* () {
      const { chain, config, daemon, file, plan, until } = yield* openShop()
      const order = { chain: "ethereum", currency: "USDC", amount: `${50n * usd}` } as const
      const begun = Effect.gen(function* () {
        const payment = yield* daemon.create(order)
        yield* pay(chain, { ...payment, amount: `${25n * usd}` })
        yield* until(payment, "detecting")
        return payment.address
      })
      const [named, also, alone] = [yield* begun, yield* begun, yield* begun]
      yield* plan("plan", "--to", someone(), "--include-open", `${named},${also.toLowerCase()}`)
      const { leftOut, moves } = JSON.parse(readFileSync(file("plan"), "utf8")) as Plan
      expect(moves.map(({ address, amount }) => [address, amount])).toEqual(
        [named, also].map((address) => [address, `${25n * usd}`])
      )
      expect(leftOut.map(({ address }) => address)).toEqual([alone])
      expect(yield* plan("all", "--to", someone(), "--include-open", "all")).toMatchObject({ moves: 3 })
      const command = ["sweep", "plan", ...network, "--to", someone(), "-o", file("none"), ...config]
      for (const [more, why] of [
        [["--include-open", `all,${someone()}`], "no money came to such an address"],
        [["--include-open", named, "--refund", "exc_1"], "leave it out beside --refund"]
      ] as const) {
        const { code, stderr } = yield* tilld([...command, ...more])
        expect([code, stderr]).toEqual([2, expect.stringContaining(why)])
      }
    }),
  40_000
)
