import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Runtime } from "effect"
import type { Address } from "viem"
import { HDKey } from "viem/accounts"
import { digested, type Plan } from "../../src/Collect/Plan.ts"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import type { UnsweptRow } from "../../src/Collect/unswept.ts"
import { hdWallet } from "../../src/Settings/hdWallet.ts"
import { pay, rows } from "../lib/daemon.ts"
import { root, tilld, tilldJson } from "../lib/tilld.ts"
import { holdsExactly, someone } from "./collecting.ts"
import { inFrontOf } from "./inFront.ts"
import { eventually, network, openShop } from "./shop.ts"

const ether = 10n ** 18n
const usd = 10n ** 6n

it.scopedLive(
  "collects what has come, and late coin at a swept address is seen afterwards",
  () =>
    Effect.gen(function* () {
      const { chain, config, daemon, exceptions, file, home, paid, plan, sign, until } = yield* openShop()
      const payments = yield* Effect.all(
        [paid("USDC", 25n * usd), paid("USDC", 30n * usd), paid("USDT", 40n * usd), paid("ETH", ether / 10n)],
        { concurrency: "unbounded" }
      )
      const open = yield* daemon.create({ chain: "ethereum", currency: "USDC", amount: `${5n * usd}` })
      yield* chain.payToken({ symbol: "USDC", to: open.address as Address, amount: 1n * usd })

      yield* until(open, "detecting")
      const waiting = yield* tilldJson<ReadonlyArray<UnsweptRow>>(["addresses", "--unswept", ...config])
      expect(new Map(waiting.map(({ address, usd, waitsFor }) => [address, [usd, waitsFor]]))).toEqual(
        new Map([
          [payments[0].address, ["25.00", undefined]],
          [payments[1].address, ["30.00", undefined]],
          [payments[2].address, ["40.00", undefined]],
          [payments[3].address, ["250.00", undefined]],
          [open.address, ["1.00", "payment"]]
        ])
      )
      const csv = yield* tilld(["addresses", "unswept", "--csv", "--min-usd", "30", ...network, ...config])
      expect(csv.stdout.split("\n").map((line) => line.split(",").length)).toEqual([10, 10, 10, 10, 1])
      const elsewhere = yield* tilld(
        ["sweep", "plan", ...network, "--to", someone().toLowerCase(), "-o", file("elsewhere"), ...config],
        { env: { TILLD_SWEEP__ALLOW: JSON.stringify([someone()]) } }
      )
      expect([elsewhere.code, existsSync(file("elsewhere"))]).toEqual([2, false])
      expect(elsewhere.stderr).toMatch(/no checksum.*is not in sweep.allow: add it there/s)
      for (const [refund, said] of [
        [["--refund", ""], "--refund has no value: was a variable not set?"],
        [["--refund"], "--refund has no value"],
        [["--refund", ","], "--refund names none"]
      ] as const) {
        const named = ["sweep", "plan", ...network, "--to", someone(), "-o", file("named"), ...config, ...refund]
        const { code, stderr } = yield* tilld(named)
        expect([code, stderr, existsSync(file("named"))]).toEqual([2, expect.stringContaining(said), false])
      }
      const table = yield* tilld(["addresses", "--unswept", ...config])
      expect(table.stdout).toContain("ethereum.test USDC: 56.00 USD at 3 addresses")

      const destination = someone()
      const made = yield* plan("plan.json", "--to", destination)
      expect(made).toMatchObject({ moves: 4, leftOut: [{ address: open.address, why: `payment ${open.id} is open` }] })
      yield* sign("plan.json")
      const result = yield* tilldJson<SweepResult>(["sweep", "broadcast", file("plan.json.signed"), ...config])
      expect(result.differences).toEqual([])
      expect(holdsExactly(result)).toBe(true)
      expect(yield* chain.tokenBalance("USDC", destination)).toBe(55n * usd)
      expect(yield* chain.tokenBalance("USDT", destination)).toBe(40n * usd)
      const collected = yield* rows<{ currency: string; amount: string }>(home, "SELECT * FROM collected")
      expect(collected.map(({ amount, currency }) => [currency, amount])).toEqual(
        expect.arrayContaining([
          ["USDC", `${25n * usd}`],
          ["USDT", `${40n * usd}`]
        ])
      )
      expect(collected).toHaveLength(4)
      const again = yield* tilld(["sweep", "broadcast", file("plan.json.signed"), ...config])
      expect([again.code, again.stderr]).toEqual([0, expect.stringContaining("It was sent before")])
      const rest = yield* tilldJson<ReadonlyArray<UnsweptRow>>(["addresses", "--unswept", "--min-usd", "1", ...config])
      expect(rest.map(({ address }) => address)).toEqual([open.address])

      // Coin at the address of a payment in coin that was swept, and at one whose tokens were.
      expect(yield* exceptions).toEqual([])
      const [usdc, , , coin] = payments
      for (const to of [coin.address, usdc.address]) {
        yield* chain.payNative({ to: to as Address, amount: ether / 4n })
      }
      const found = yield* eventually(exceptions, (all) => all.length >= 2)
      expect(new Map(found.map(({ address, amount, currency }) => [address, [amount, currency]]))).toEqual(
        new Map([coin, usdc].map(({ address }) => [address, [`${ether / 4n}`, "ETH"]]))
      )
      expect(found).toHaveLength(2)
      const troubles = daemon.lines().filter((line) => /"logLevel":"(ERROR|FATAL)"/.test(line))
      expect(troubles).toEqual([])
    }),
  40_000
)

it.scopedLive(
  "sends an exception back from the address that received it, and notes the refund",
  () =>
    Effect.gen(function* () {
      const { chain, config, daemon, exceptions, file, paid, plan, sign } = yield* openShop()
      const token = yield* paid("USDC", 25n * usd)
      const coin = yield* paid("ETH", ether / 10n)
      // Without an open payment the chain is read once a minute.
      yield* daemon.create({ chain: "ethereum", currency: "DAI", amount: "1000" })
      yield* pay(chain, { ...token, amount: `${7n * usd}` })
      yield* pay(chain, { ...coin, amount: `${ether / 50n}` })
      const open = yield* eventually(exceptions, (all) => all.length === 2)
      const customer = someone()
      const refunds = ["--refund", open.map(({ id }) => id).join(","), "--to", customer]
      expect(yield* plan("refund.json", ...refunds)).toMatchObject({ moves: 2, leftOut: [] })
      // Whatever the case of its addresses.
      const { digest: _, words: __, ...made } = JSON.parse(readFileSync(file("refund.json"), "utf8")) as Plan
      const moves = made.moves.map((move) => ({ ...move, address: move.address.toLowerCase() }))
      writeFileSync(file("refund.json"), JSON.stringify(digested({ ...made, moves })))
      yield* sign("refund.json")
      const result = yield* tilldJson<SweepResult>(["sweep", "broadcast", file("refund.json.signed"), ...config])
      expect(result.differences).toEqual([])
      expect(yield* chain.tokenBalance("USDC", customer)).toBe(7n * usd)
      expect(yield* chain.balance(customer)).toBe(ether / 50n)
      expect(yield* chain.tokenBalance("USDC", token.address as Address)).toBe(25n * usd)
      const closed = yield* exceptions
      expect(closed.map(({ resolution, resolutionTxHash }) => [resolution, resolutionTxHash])).toEqual(
        closed.map(({ id }) => ["refunded", result.transfers.find(({ refund }) => refund === id)?.hash])
      )
      const unknown = yield* tilld([...["sweep", "plan", ...network, ...refunds, "-o", file("again.json"), ...config]])
      expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("is not an open exception")])
    }),
  40_000
)

it.scopedLive(
  "sends back only what is owed, and notes each refund by itself",
  () =>
    Effect.gen(function* () {
      const { chain, config, daemon, exceptions, file, home, paid, plan, sign } = yield* openShop()
      const token = yield* paid("USDC", 25n * usd)
      yield* daemon.create({ chain: "ethereum", currency: "DAI", amount: "1000" })
      for (const amount of [5n, 6n, 7n]) yield* pay(chain, { ...token, amount: `${amount * usd}` })
      const open = yield* eventually(exceptions, (all) => all.length === 3)
      const [taken, accepted, owed] = open.map(({ id }) => id)
      const customer = someone()
      const to = (...ids: ReadonlyArray<string | undefined>) => ["--refund", ids.join(","), "--to", customer]
      yield* plan("late.json", ...to(taken))
      yield* plan("refund.json", ...to(accepted, owed))
      for (const name of ["late.json", "refund.json"]) yield* sign(name)
      const send = (name: string, env = {}) =>
        tilld(["sweep", "broadcast", file(`${name}.signed`), "--json", ...config], { env })

      // Of these exceptions, and more than came.
      const { digest: _, words: __, ...made } = JSON.parse(readFileSync(file("refund.json"), "utf8")) as Plan
      const moves = made.moves.map((move) => ({ ...move, amount: `${BigInt(move.amount) + 1n}` }))
      writeFileSync(file("more.json"), JSON.stringify(digested({ ...made, moves })))
      yield* sign("more.json")
      const more = yield* send("more.json")
      expect([more.code, more.stderr]).toEqual([1, expect.stringContaining("is of another amount or address")])

      expect((yield* tilld(["payments", "accept", taken ?? "", ...config])).code).toBe(0)
      const late = yield* send("late.json")
      expect([late.code, late.stderr]).toEqual([1, expect.stringContaining(`${taken} is not an open exception`)])
      expect(yield* chain.tokenBalance("USDC", customer)).toBe(0n)

      // Of another seed, whatever it names as refunded.
      const stranger = HDKey.fromMasterSeed(new Uint8Array(64).fill(7)).derive("m/44'/60'/0'").publicExtendedKey
      writeFileSync(file("stranger"), stranger)
      const other = yield* tilld([
        ...["sweep", "broadcast", file("refund.json.signed"), "--xpub", file("stranger"), ...config]
      ])
      expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("is of another wallet")])

      // Killed once it was sent; one of its exceptions is decided meanwhile.
      const preload = `--import=${join(root, "test/lib/killAt.mjs")}`
      const killed = yield* send("refund.json", { KILL_ON: "fsyncSync", KILL_AT: "3", NODE_OPTIONS: preload })
      expect(killed.signal).toBe("SIGKILL")
      expect((yield* tilld(["payments", "accept", accepted ?? "", ...config])).code).toBe(0)
      const sent = yield* send("refund.json")
      expect(sent.code).toBe(1)
      const result = JSON.parse(sent.stdout) as SweepResult
      expect(result.differences).toEqual([])
      expect(new Set(result.transfers.map(({ refund }) => refund))).toEqual(new Set([accepted, owed]))
      const { hash } = result.transfers.find(({ refund }) => refund === accepted) ?? {}
      expect(sent.stderr).toContain(`${accepted} was decided otherwise, and ${hash} has sent it back too`)
      const resolutions = yield* exceptions
      expect(Object.fromEntries(resolutions.map(({ id, resolution }) => [id, resolution]))).toEqual({
        [taken ?? ""]: "accepted",
        [accepted ?? ""]: "accepted",
        [owed ?? ""]: "refunded"
      })
      expect(yield* rows(home, "SELECT * FROM collected")).toHaveLength(2)
    }),
  40_000
)

it.scopedLive("leaves alone what comes while a plan is made", () =>
  Effect.gen(function* () {
    const { chain, config, file, paid } = yield* openShop()
    const [early, late] = yield* Effect.all([paid("USDC", 25n * usd), paid("USDC", 30n * usd)], {
      concurrency: "unbounded"
    })
    const run = Runtime.runPromise(yield* Effect.runtime())
    let hasCome = false
    // Before anything of the chain was read.
    const front = yield* inFrontOf(chain.url, async ({ method }, result) => {
      if (method !== "eth_chainId" || hasCome) return result
      hasCome = true
      const coming = chain.payToken({ symbol: "USDC", to: late.address as Address, amount: 7n * usd })
      await run(Effect.zipRight(coming, chain.mine()))
      return result
    })
    const command = ["sweep", "plan", ...network, "--to", someone(), "-o", file("plan.json"), "--json", ...config]
    const made = yield* tilld(command, { env: { TILLD_CHAINS__ETHEREUM__TEST__RPC_URLS: JSON.stringify([front.url]) } })
    expect([hasCome, made.code]).toEqual([true, 0])
    const { leftOut, moves } = JSON.parse(readFileSync(file("plan.json"), "utf8")) as Plan
    expect(new Map(moves.map(({ address, amount }) => [address, amount]))).toEqual(
      new Map([
        [early.address, `${25n * usd}`],
        [late.address, `${30n * usd}`]
      ])
    )
    expect(leftOut).toMatchObject([{ address: late.address, amount: `${7n * usd}` }])
  })
)

it.scopedLive("goes on with what was begun, without a daemon and whatever has come since", () =>
  Effect.gen(function* () {
    const { chain, config, daemon, file, paid, plan, sign } = yield* openShop()
    const { address } = yield* paid("USDC", 25n * usd)
    const destination = someone()
    yield* plan("plan.json", "--to", destination)
    yield* sign("plan.json")
    yield* chain.payToken({ symbol: "USDC", to: address as Address, amount: 7n * usd })
    yield* chain.mine()
    const command = ["sweep", "broadcast", file("plan.json.signed"), ...config]
    // A line that was cut short is no beginning.
    writeFileSync(`${file("plan.json.signed")}.journal`, '{"event":"begun","at')
    // Killed once its beginning was noted, before anything was sent.
    const NODE_OPTIONS = `--import=${join(root, "test/lib/killAt.mjs")}`
    const env = { KILL_ON: "fsyncSync", KILL_AT: "2", NODE_OPTIONS }
    expect((yield* tilld(command, { env })).signal).toBe("SIGKILL")
    yield* daemon.end("SIGTERM")
    const { differences, transfers } = yield* tilldJson<SweepResult>(command)
    expect([differences, transfers]).toMatchObject([[], [{ address }]])
    expect(yield* chain.tokenBalance("USDC", destination)).toBe(25n * usd)
  })
)

it.scopedLive("sends nothing from an address of which the database has no payment: it could not note that", () =>
  Effect.gen(function* () {
    const { chain, config, file, home, paid, plan, sign } = yield* openShop()
    yield* paid("USDC", 25n * usd)
    yield* plan("plan.json", "--to", someone())
    const { publicExtendedKey } = HDKey.fromMasterSeed(home.seed()).derive("m/44'/60'/0'")
    const [address, index] = [hdWallet(publicExtendedKey).address(4_000) as Address, 4_000]
    yield* chain.payToken({ symbol: "USDC", to: address, amount: 25n * usd })
    const { digest: _, words: __, ...made } = JSON.parse(readFileSync(file("plan.json"), "utf8")) as Plan
    const moves = made.moves.map((move) => ({ ...move, address, index }))
    writeFileSync(file("plan.json"), JSON.stringify(digested({ ...made, moves })))
    yield* sign("plan.json")
    const sent = yield* tilld(["sweep", "broadcast", file("plan.json.signed"), ...config])
    expect([sent.code, sent.stderr]).toEqual([1, expect.stringContaining(`has no money that came to ${address}`)])
    expect(yield* chain.tokenBalance("USDC", address)).toBe(25n * usd)
    expect(existsSync(`${file("plan.json.signed")}.journal`)).toBe(false)
  })
)

it.scopedLive(
  "killed at ten moments and started again, it sends nothing twice",
  () =>
    Effect.gen(function* () {
      const { chain, config, file, paid, plan, sign } = yield* openShop()
      yield* Effect.all(
        Array.from({ length: 4 }, () => paid("USDT", 20n * usd)),
        { concurrency: "unbounded" }
      )
      yield* paid("USDC", 20n * usd)
      const destination = someone()
      yield* plan("plan.json", "--to", destination)
      yield* sign("plan.json")
      const command = ["sweep", "broadcast", file("plan.json.signed"), "--json", ...config]
      const env = (moment: number) => ({
        KILL_ON: "fsyncSync",
        KILL_AT: `${moment}`,
        NODE_OPTIONS: `--import=${join(root, "test/lib/killAt.mjs")}`
      })
      let kills = 0
      for (let moment = 1; moment <= 10; moment++) {
        const { signal } = yield* tilld(command, { env: env(moment) })
        if (signal === "SIGKILL") kills += 1
      }
      expect(kills).toBe(10)
      const { code, stdout } = yield* tilld(command)
      expect(code).toBe(0)
      const result = JSON.parse(stdout) as SweepResult
      expect(result.differences).toEqual([])
      expect(holdsExactly(result)).toBe(true)
      expect(yield* chain.tokenBalance("USDT", destination)).toBe(80n * usd)
      expect(yield* chain.tokenBalance("USDC", destination)).toBe(20n * usd)
      const senders = result.transfers.map(({ address }) => address)
      const counts = yield* Effect.forEach(
        senders,
        (address) => chain.rpc<string>("eth_getTransactionCount", [address, "latest"]),
        { concurrency: 4 }
      )
      expect(counts.every((count) => BigInt(count) <= 1n)).toBe(true)
    }),
  80_000
)
