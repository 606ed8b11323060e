import { existsSync, writeFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import { Effect, Runtime } from "effect"
import type { Address, Hex } from "viem"
import { HDKey } from "viem/accounts"
import type { UnsweptRow } from "../../src/Collect/candidates.ts"
import type { Plan } from "../../src/Collect/Plan.ts"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import { addUp, type LedgerRow, leftOf } from "../../src/Domain/LedgerRow.ts"
import { hdWallet } from "../../src/Settings/hdWallet.ts"
import { pay, rows, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"
import { ether, holdsExactly, someone, usd } from "./collecting.ts"
import { inFrontOf } from "./inFront.ts"
import { eventually, killedAt, network, openShop } from "./shop.ts"

const atOnce = { concurrency: "unbounded" } as const

interface GasRow {
  readonly tx_hash: string
  readonly payer: string
  readonly amount: string
  readonly account_id: string | null
  readonly block_time: number
}

/** All transactions that these addresses have sent are in the table `gas`, with what the chain says of each, and no others. */
const gasIsThatOf = Effect.fnUntraced(function* (
  { chain, home }: Effect.Effect.Success<ReturnType<typeof openShop>>,
  payers: ReadonlyArray<Address>
) {
  const noted = yield* rows<GasRow>(home, "SELECT * FROM gas")
  const counts = yield* Effect.forEach(payers, (payer) => chain.rpc<Hex>("eth_getTransactionCount", [payer, "latest"]))
  expect(noted).toHaveLength(counts.reduce((sum, count) => sum + Number(count), 0))
  for (const { account_id, amount, block_time, payer, tx_hash } of noted) {
    const receipt = yield* chain.rpc<Record<"blockNumber" | "effectiveGasPrice" | "from" | "gasUsed", Hex>>(
      "eth_getTransactionReceipt",
      [tx_hash]
    )
    const block = yield* chain.rpc<{ readonly timestamp: Hex }>("eth_getBlockByNumber", [receipt.blockNumber, false])
    expect({ account_id, amount, block_time, payer: payer.toLowerCase() }).toEqual({
      ...{ account_id: "default", payer: receipt.from },
      ...{
        amount: `${BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice)}`,
        block_time: Number(block.timestamp)
      }
    })
  }
})

liveTest("collects what has come, and late coin at a swept address is seen afterwards", function* () {
  const shop = yield* openShop()
  const { chain, config, daemon, exceptions, file, home, paid, plan, planning, until } = shop
  const payments = yield* Effect.all(
    [paid("USDC", 25n * usd), paid("USDC", 30n * usd), paid("USDT", 40n * usd), paid("ETH", ether / 10n)],
    atOnce
  )
  const [usdc, other, usdt, coin] = payments
  const open = yield* daemon.create({ chain: "ethereum", currency: "USDC", amount: `${5n * usd}` })
  yield* chain.payToken({ symbol: "USDC", to: open.address as Address, amount: 1n * usd })

  yield* until(open, "detecting")
  const unswept = ["addresses", "--unswept", ...config]
  const waiting = yield* tilldJson<ReadonlyArray<UnsweptRow>>(unswept)
  expect(new Map(waiting.map(({ address, usd, waitsFor }) => [address, [usd, waitsFor]]))).toEqual(
    new Map([
      [usdc.address, ["25.00", undefined]],
      [other.address, ["30.00", undefined]],
      [usdt.address, ["40.00", undefined]],
      [coin.address, ["250.00", undefined]],
      [open.address, ["1.00", "payment"]]
    ])
  )
  const csv = yield* tilld(["addresses", "unswept", "--csv", "--min-usd", "30", ...network, ...config])
  expect(csv.stdout.split("\n").map((line) => line.split(",").length)).toEqual([10, 10, 10, 10, 1])
  const table = yield* tilld(unswept)
  expect(table.stdout).toContain("ethereum.test USDC: 56.00 USD at 3 addresses")
  const env = { TILLD_SWEEP__ALLOW: JSON.stringify([someone()]) }
  const to = ["--to", someone()]
  for (const [args, said] of [
    [["--to", someone().toLowerCase()], /no checksum.*is not in sweep.allow: add it there/s],
    [[...to, "--refund", ""], /--refund has no value: was a variable not set\?/],
    [[...to, "--refund"], /--refund has no value/],
    [[...to, "--refund", ","], /--refund names none/]
  ] as const) {
    const { code, stderr } = yield* tilld([...planning("none", ...args.slice(0, 2)), ...args.slice(2)], { env })
    expect([code, stderr, existsSync(file("none"))]).toEqual([2, expect.stringMatching(said), false])
  }

  const destination = someone()
  const made = yield* plan("plan", "--to", destination)
  expect(made).toMatchObject({ moves: 4, leftOut: [{ address: open.address, why: `payment ${open.id} is open` }] })
  yield* shop.sign("plan")
  yield* shop.sent("plan")
  expect(yield* chain.tokenBalance("USDC", destination)).toBe(55n * usd)
  expect(yield* chain.tokenBalance("USDT", destination)).toBe(40n * usd)
  const collected = yield* rows<{ currency: string; amount: string }>(home, "SELECT * FROM collected")
  expect(collected).toHaveLength(4)
  for (const [currency, amount] of [
    ["USDC", `${25n * usd}`],
    ["USDT", `${40n * usd}`]
  ]) {
    expect(collected).toContainEqual(expect.objectContaining({ currency, amount }))
  }
  const payers = [shop.sponsor, usdt.address as Address, coin.address as Address]
  yield* gasIsThatOf(shop, payers)
  // To the wei: what came, less what went and its gas, is what is there.
  const ofCoin = collected.find(({ currency }) => currency === "ETH")
  const gas = yield* rows<{ amount: string }>(home, "SELECT amount FROM gas WHERE payment_id = ?", coin.id)
  expect(ether / 10n - BigInt(ofCoin?.amount ?? 0) - BigInt(gas[0]?.amount ?? 0)).toBe(
    yield* chain.balance(coin.address as Address)
  )
  const again = yield* shop.broadcast("plan")
  expect([again.code, again.stderr]).toEqual([0, expect.stringContaining("It was sent before")])
  yield* gasIsThatOf(shop, payers)
  // By the ledger, each token has come to what is at the addresses, to the unit.
  const { rows: ledger } = yield* tilldJson<{ readonly rows: ReadonlyArray<LedgerRow> }>([
    ...["ledger", "--mode", "test", "--csv"],
    ...config
  ])
  const left = new Map(addUp(ledger).sums.map((sum) => [sum.currency, leftOf(sum)]))
  const all = [usdc, other, usdt, coin, open].map(({ address }) => address as Address)
  const held = (symbol: "USDC" | "USDT") =>
    Effect.map(
      Effect.forEach(all, (one) => chain.tokenBalance(symbol, one), atOnce),
      (each) => each.reduce((sum, one) => sum + one, 0n)
    )
  const coins = yield* Effect.forEach(all, (one) => chain.balance(one), atOnce)
  expect(Object.fromEntries(left)).toEqual({
    USDC: yield* held("USDC"),
    USDT: yield* held("USDT"),
    ETH: coins.reduce((sum, one) => sum + one, 0n)
  })
  expect(ledger.filter(({ worth }) => worth === undefined)).toEqual([])
  const printed = yield* tilld(["ledger", "--mode", "test", ...config])
  expect(printed.stdout).toContain(
    "ethereum USDT: 40.000000 received - 0.000000 refunded - 40.000000 collected - 0.000000 gas = 0.000000"
  )
  // Of some rows, no sum is a balance; a symbol is found in any case of letters.
  const moved = yield* tilld(["ledger", "--mode", "test", "--kind", "receipt", "--currency", "usdt", ...config])
  expect(moved.stdout).toContain(
    "\nethereum USDT: 40.000000 received, 0.000000 refunded, 0.000000 collected, 0.000000 gas\n"
  )
  const nothing = yield* tilld(["ledger", "--mode", "test", "--month", "2001-01", ...config])
  expect(nothing.stdout).toMatch(/^TIME .*\nThere is no such row in test mode\n$/)
  const exported = yield* tilld(["ledger", "--mode", "test", "--csv", "--kind", "gas", ...config])
  const noted = yield* rows(home, "SELECT * FROM gas")
  expect(exported.stdout.trim().split("\n")).toHaveLength(noted.length + 1)
  const rest = yield* tilldJson<ReadonlyArray<UnsweptRow>>([...unswept, "--min-usd", "1"])
  expect(rest.map(({ address }) => address)).toEqual([open.address])

  // Coin at the address of a payment in coin that was swept, and at one whose tokens were.
  expect(yield* exceptions).toEqual([])
  const late = [coin, usdc].map(({ address }) => address)
  for (const address of late) yield* chain.payNative({ to: address as Address, amount: ether / 4n })
  const found = yield* eventually(exceptions, (all) => all.length >= 2)
  expect(found).toHaveLength(2)
  expect(new Map(found.map(({ address, amount, currency }) => [address, [amount, currency]]))).toEqual(
    new Map(late.map((address) => [address, [`${ether / 4n}`, "ETH"]]))
  )
  expect(daemon.lines().filter((line) => /"logLevel":"(ERROR|FATAL)"/.test(line))).toEqual([])
})

liveTest("sends back only what is owed, from where it came to, and notes each refund by itself", function* () {
  const shop = yield* openShop()
  const { broadcast, broadcasting, chain, config, exceptions, file, home, paid, plan, planning, sign } = shop
  const [token, coin] = yield* Effect.all([paid("USDC", 25n * usd), paid("ETH", ether / 10n)], atOnce)
  for (const amount of [5n, 6n, 7n]) yield* pay(chain, { ...token, amount: `${amount * usd}` })
  yield* pay(chain, { ...coin, amount: `${ether / 50n}` })
  const open = yield* eventually(exceptions, (all) => all.length === 4)
  const ofToken = open.flatMap(({ currency, id }) => (currency === "USDC" ? [id] : []))
  const [taken = "", held = "", owed = ""] = ofToken
  const ofCoin = open.find(({ currency }) => currency === "ETH")?.id ?? ""
  const customer = someone()
  const to = (...ids: ReadonlyArray<string>) => ["--refund", ids.join(","), "--to", customer]
  yield* plan("late", ...to(taken))
  expect(yield* plan("made", ...to(held, owed, ofCoin))).toMatchObject({ moves: 3, leftOut: [] })
  yield* sign("late")
  // Whatever the case of its addresses.
  yield* shop.signOther("refund", "made", (move) => ({ ...move, address: move.address.toLowerCase() }))

  // Of these exceptions, and more than came.
  yield* shop.signOther("more", "made", (move) => ({ ...move, amount: `${BigInt(move.amount) + 1n}` }))
  const more = yield* broadcast("more")
  expect([more.code, more.stderr]).toEqual([1, expect.stringContaining("is of another amount or address")])

  expect((yield* tilld(["payments", "accept", taken, ...config])).code).toBe(0)
  const late = yield* broadcast("late")
  expect([late.code, late.stderr]).toEqual([1, expect.stringContaining(`${taken} is not an open exception`)])
  expect(yield* chain.tokenBalance("USDC", customer)).toBe(0n)

  // Of another seed, whatever it names as refunded.
  const stranger = HDKey.fromMasterSeed(new Uint8Array(64).fill(7)).derive("m/44'/60'/0'").publicExtendedKey
  writeFileSync(file("stranger"), stranger)
  const other = yield* tilld([...broadcasting("refund"), "--xpub", file("stranger")])
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("is of another wallet")])

  // Killed once it was sent: no other decision is made meanwhile.
  expect((yield* broadcast("refund", killedAt(4))).signal).toBe("SIGKILL")
  const refused = yield* tilld(["payments", "accept", held, ...config])
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`${held} is being sent back as ref_`)])
  const { transfers } = yield* shop.sent("refund")
  const { moves } = shop.planIn("refund")
  const hashes = new Map(transfers.map(({ hash, place }) => [moves[place]?.exception, hash]))
  expect(new Set(hashes.keys())).toEqual(new Set([held, owed, ofCoin]))
  const resolutions = (yield* exceptions).map((one) => [one.id, [one.resolution, one.resolutionTxHash]])
  expect(Object.fromEntries(resolutions)).toEqual({
    [taken]: ["accepted", undefined],
    [held]: ["refunded", hashes.get(held)],
    [owed]: ["refunded", hashes.get(owed)],
    [ofCoin]: ["refunded", hashes.get(ofCoin)]
  })
  expect(yield* rows(home, "SELECT * FROM collected")).toHaveLength(3)
  const sizes = new Map(open.map(({ amount, id }) => [id, BigInt(amount)]))
  expect(yield* chain.tokenBalance("USDC", customer)).toBe((sizes.get(held) ?? 0n) + (sizes.get(owed) ?? 0n))
  expect(yield* chain.balance(customer)).toBe(ether / 50n)
  expect(yield* chain.tokenBalance("USDC", token.address as Address)).toBe(25n * usd + (sizes.get(taken) ?? 0n))
  const unknown = yield* tilld(planning("again", ...to(owed)))
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("is not an open exception")])
})

liveTest("leaves alone what comes while a plan is made, and an address that no payment has", function* () {
  const { broadcast, chain, file, home, paid, planIn, planning, signOther } = yield* openShop()
  const [early, late] = yield* Effect.all([paid("USDC", 25n * usd), paid("USDC", 30n * usd)], atOnce)
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
  const env = { TILLD_CHAINS__ETHEREUM__TEST__RPC_URLS: JSON.stringify([front.url]) }
  const made = yield* tilld(planning("plan", "--to", someone()), { env })
  expect([hasCome, made.code]).toEqual([true, 0])
  const { leftOut, moves } = planIn("plan")
  expect(new Map(moves.map(({ address, amount }) => [address, amount]))).toEqual(
    new Map([
      [early.address, `${25n * usd}`],
      [late.address, `${30n * usd}`]
    ])
  )
  expect(leftOut).toMatchObject([{ address: late.address, amount: `${7n * usd}` }])

  // What is sent from there could not be noted.
  const { publicExtendedKey } = HDKey.fromMasterSeed(home.seed()).derive("m/44'/60'/0'")
  const [address, index] = [hdWallet(publicExtendedKey).address(4_000) as Address, 4_000]
  yield* Effect.zipRight(chain.payToken({ symbol: "USDC", to: address, amount: 30n * usd }), chain.mine())
  const isFirst = ({ address }: Plan["moves"][number]) => address === early.address
  yield* signOther("unknown", "plan", (move) => (isFirst(move) ? { ...move, address, index } : move))
  const sent = yield* broadcast("unknown")
  expect([sent.code, sent.stderr]).toEqual([1, expect.stringContaining(`has no money that came to ${address}`)])
  expect(yield* chain.tokenBalance("USDC", address)).toBe(30n * usd)
  expect(existsSync(`${file("unknown.signed")}.journal`)).toBe(false)
})

liveTest("killed at ten moments and started again, it sends all that was planned, and nothing twice", function* () {
  const shop = yield* openShop()
  const { broadcast, chain, daemon, file, paid } = shop
  const four = Array.from({ length: 4 }, () => paid("USDT", 20n * usd))
  const [usdc, ...usdt] = yield* Effect.all([paid("USDC", 25n * usd), ...four], atOnce)
  const destination = someone()
  yield* shop.plan("plan", "--to", destination)
  yield* shop.sign("plan")
  // What a payer sends meanwhile stays.
  yield* chain.payToken({ symbol: "DAI", to: usdt[0]?.address as Address, amount: 1n })
  yield* chain.payToken({ symbol: "USDC", to: usdc.address as Address, amount: 7n * usd })
  yield* chain.mine()
  // A line that was cut short is no beginning.
  writeFileSync(`${file("plan.signed")}.journal`, '{"event":"begun","at')
  for (let moment = 1; moment <= 10; moment++) {
    expect((yield* broadcast("plan", killedAt(moment))).signal, `${moment}`).toBe("SIGKILL")
    // What was begun goes on without a daemon, which has to note it in the end.
    if (moment === 2) yield* daemon.end("SIGTERM")
  }
  const unnoted = yield* broadcast("plan")
  expect([unnoted.code, unnoted.stderr]).toEqual([
    1,
    expect.stringMatching(/could not be noted .*a running daemon.*: run/)
  ])
  yield* serveHere(shop.home, daemon.key)
  const { code, stdout } = yield* broadcast("plan")
  expect(code).toBe(0)
  const result = JSON.parse(stdout) as SweepResult
  expect([result.differences, holdsExactly(result)]).toEqual([[], true])
  expect(yield* chain.tokenBalance("USDT", destination)).toBe(80n * usd)
  expect(yield* chain.tokenBalance("USDC", destination)).toBe(25n * usd)
  expect(yield* chain.tokenBalance("USDC", usdc.address as Address)).toBe(7n * usd)
  for (const { address } of result.transfers) {
    expect(BigInt(yield* chain.rpc<string>("eth_getTransactionCount", [address, "latest"]))).toBeLessThanOrEqual(1n)
  }
})
