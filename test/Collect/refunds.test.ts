/** A refund is paid once, whatever else is decided, noted, restored or hidden while signed transfers send it. */
import { copyFileSync, readFileSync, rmSync } from "node:fs"
import { expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect, Runtime } from "effect"
import type { Address } from "viem"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import type { RefundObject } from "../../src/Domain/Refund.ts"
import { type Daemon, pay, rows, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"
import { ether, someone, usd } from "./collecting.ts"
import { type Edit, inFrontOf } from "./inFront.ts"
import { eventually, killedAt, onceDeep, openShop, type ShopOptions } from "./shop.ts"

/** A shop with a paid payment, to whose address more came: its exceptions, the oldest first. */
const owing = Effect.fnUntraced(function* (
  currency: string,
  price: bigint,
  late: ReadonlyArray<bigint>,
  options?: ShopOptions
) {
  const shop = yield* openShop(options)
  const { chain, exceptions, paid, plan, planning, sign } = shop
  const payment = yield* paid(currency, price)
  const snapshot = shop.file("snapshot.db")
  const database = new Database(shop.home.database, { readonly: true })
  yield* Effect.promise(() => database.backup(snapshot))
  database.close()
  /** Pays once more, and gives the exception. */
  const payAgain = Effect.fnUntraced(function* (amount: bigint) {
    const before = (yield* exceptions).map(({ id }) => id)
    yield* pay(chain, { ...payment, amount: `${amount}` })
    const all = yield* eventually(exceptions, (found) => found.length > before.length)
    return all.map(({ id }) => id).find((id) => !before.includes(id)) ?? ""
  })
  const ids = yield* Effect.forEach(late, payAgain)
  const customer = someone()
  const to = (id: string) => ["--refund", id, "--to", customer]
  /** Plans and signs a refund. */
  const signed = (name: string, id: string) => Effect.zipRight(plan(name, ...to(id)), sign(name))
  /** Why no other plan pays it. */
  const why = (id: string) =>
    Effect.map(onceDeep(planning("other", ...to(id))), ({ code, stderr }) => `${code}: ${stderr}`)
  const has = currency === "ETH" ? chain.balance(customer) : chain.tokenBalance("USDC", customer)
  const exception = (id: string) => Effect.map(exceptions, (all) => all.find((one) => one.id === id))
  const resolve = (id: string, decision: object, daemon: Daemon = shop.daemon) =>
    Effect.map(
      daemon.call<{ readonly error?: { readonly code: string } }>("POST", `/v1/exceptions/${id}/resolve`, decision),
      ({ body, status }) => body.error?.code ?? `${status}`
    )
  return { ...shop, customer, exception, has, ids, payAgain, payment, resolve, signed, snapshot, to, why }
})

/** As a provider does that does not estimate signed transfers. */
const hideAuthorizations: Edit = ({ method, params: [call] }, result) =>
  method === "eth_estimateGas" && JSON.stringify(call).includes('"0xe3ee160e') ? null : result

const coin = ether / 50n
const half = (amount: bigint) => ({ action: "refund", amount: `${amount}` })
const isDecided = (answer: string) => answer !== "MONEY_NOT_CONFIRMED"

for (const [what, byHand] of [
  ["all of it", 0n],
  ["its other half, the first having been sent by hand and noted without its transaction", coin / 2n]
] as const) {
  liveTest(`pays an exception once: ${what}`, function* () {
    const { exception, has, ids, resolve, sent, signed, why } = yield* owing("ETH", ether / 10n, [coin])
    const [id = ""] = ids
    if (byHand > 0n) expect(yield* eventually(resolve(id, half(byHand)), isDecided)).toBe("200")
    yield* signed("plan", id)
    const { transfers } = yield* sent("plan")
    expect(transfers.map(({ amount }) => amount)).toEqual([`${coin - byHand}`])
    expect(yield* exception(id)).toMatchObject({ resolution: "refunded", amount: `${coin}` })
    expect(yield* why(id)).toMatch(/^2: .*is not an open exception/s)
    expect(yield* has).toBe(coin - byHand)
  })
}

/** What the API is asked about an exception while its refund is sent, and how it answers. */
const meanwhile: ReadonlyArray<readonly [what: string, decision: object | undefined]> = [
  ["nothing is asked", undefined],
  ["it is to be accepted", { action: "accept" }],
  ["one base unit of it is noted as sent back", { action: "refund", amount: "1" }]
]

for (const [what, decision] of meanwhile) {
  liveTest(`pays an exception once that is being sent back while ${what}`, function* () {
    const run = Runtime.runPromise(yield* Effect.runtime())
    let ask: Effect.Effect<string> | undefined
    const answers: Array<string> = []
    const front = (url: string) =>
      inFrontOf(url, async ({ method }, result) => {
        const asked = method === "eth_sendRawTransaction" ? ask : undefined
        if (asked !== undefined) ask = undefined
        if (asked !== undefined) answers.push(await run(asked))
        return result
      })
    const shop = yield* owing("USDC", 25n * usd, [400n * usd, 400n * usd], { front })
    const { exception, has, ids, payment, resolve, sent, signed, why } = shop
    const [id = ""] = ids
    yield* signed("plan", id)
    ask = decision && resolve(id, decision)
    const { transfers } = yield* sent("plan")
    expect(answers).toEqual(decision === undefined ? [] : ["REFUND_UNDER_WAY"])
    expect(yield* exception(id)).toMatchObject({ resolution: "refunded", resolutionTxHash: transfers[0]?.hash })
    expect(yield* why(id)).toMatch(/^2: .*is not an open exception/s)
    expect(yield* has).toBe(400n * usd)
    expect((yield* shop.daemon.payment(payment)).amountReceived).toBe(`${25n * usd}`)
  })
}

liveTest(
  "pays a killed refund once, in the same database and in a restored one, also by who hides its way",
  function* () {
    const truth: Edit = (_, result) => result
    let edit = truth
    const front = (url: string) => inFrontOf(url, (call, result) => edit(call, result))
    const shop = yield* owing("USDC", 25n * usd, [400n * usd, 400n * usd], { front })
    const { broadcast, chain, daemon, has, home, ids, payment, resolve, signed, snapshot, why } = shop
    const [id = "", other = ""] = ids
    yield* signed("plan", id)
    expect((yield* broadcast("plan", killedAt(4))).signal).toBe("SIGKILL")
    expect(yield* has).toBe(400n * usd)
    for (const hiding of [truth, hideAuthorizations]) {
      edit = hiding
      expect(yield* why(id)).toMatch(/^2: .*is sent by another plan: run its broadcast to its end/s)
    }
    expect(yield* resolve(id, { action: "refund", amount: "1" })).toBe("REFUND_UNDER_WAY")

    // Restored from before the money came: what has sent it cannot be noted yet, and nothing else counts as noted.
    yield* daemon.end("SIGTERM")
    for (const end of ["-wal", "-shm"]) rmSync(`${home.database}${end}`, { force: true })
    copyFileSync(snapshot, home.database)
    edit = (call, result) => (call.method === "eth_getLogs" ? null : result)
    const again = yield* serveHere(home, daemon.key)
    const early = yield* broadcast("plan")
    expect([early.code, early.stderr]).toEqual([
      1,
      expect.stringMatching(/has sent back what could not be noted .*ref_/)
    ])
    expect(yield* rows(home, "SELECT * FROM collected")).toEqual([])
    edit = hideAuthorizations
    const listed = again.call<{ readonly data: ReadonlyArray<{ readonly resolution?: string }> }>(
      "GET",
      "/v1/exceptions"
    )
    yield* eventually(listed, ({ body }) => body.data.length === 2)
    expect(yield* eventually(resolve(id, { action: "refund", amount: "1" }, again), isDecided)).toBe("200")
    for (const hiding of [truth, hideAuthorizations]) {
      edit = hiding
      expect(yield* why(id)).toMatch(/^1: .*was sent back already, by an authorization/s)
    }
    edit = truth
    expect((yield* broadcast("plan")).code).toBe(0)
    const open = (yield* listed).body.data.filter(({ resolution }) => resolution === undefined)
    expect(open).toMatchObject([{ id: other }])
    expect(yield* why(id)).toMatch(/^2: .*is not an open exception/s)
    expect([yield* has, yield* chain.tokenBalance("USDC", payment.address as Address)]).toEqual([
      400n * usd,
      425n * usd
    ])
  }
)

liveTest("plans no refund from where a killed one sent coin, until that was run again", function* () {
  const { broadcast, has, home, ids, payAgain, payment, signed, why } = yield* owing("ETH", ether / 10n, [coin])
  const [first = ""] = ids
  yield* signed("first", first)
  expect((yield* broadcast("first", killedAt(6))).signal).toBe("SIGKILL")
  expect(yield* has).toBe(coin)
  const second = yield* payAgain(coin)
  expect(yield* why(second)).toContain(
    `1: tilld: ${payment.address} has sent 1 transaction, and tilld knows of 0: one of them may have sent ${second} back already`
  )
  const noted = rows(home, "SELECT address, nonce FROM collected ORDER BY nonce")
  expect(yield* noted).toEqual([])
  expect((yield* broadcast("first")).code).toBe(0)
  yield* signed("second", second)
  expect((yield* broadcast("second")).code).toBe(0)
  expect(yield* has).toBe(2n * coin)
  expect(yield* noted).toEqual([0, 1].map((nonce) => ({ address: payment.address, nonce })))
})

liveTest("goes on where the journal could not be begun, and frees what is dropped then", function* () {
  const shop = yield* owing("USDC", 25n * usd, [400n * usd])
  const { broadcast, config, exception, file, has, ids, resolve, sent, signed, why } = shop
  const [id = ""] = ids
  yield* signed("plan", id)
  // The journal's first line cannot be written: recorded as begun, and nothing was sent.
  const failing = yield* broadcast("plan", killedAt(1, "writeSync"))
  expect([failing.signal, readFileSync(`${file("plan.signed")}.journal`, "utf8")]).toEqual(["SIGKILL", ""])
  const begun = yield* tilldJson<ReadonlyArray<RefundObject>>(["refunds", "list", "--mode", "test", ...config])
  expect(begun).toMatchObject([{ status: "begun", exceptions: [id], amount: `${400n * usd}` }])
  expect(yield* resolve(id, { action: "accept" })).toBe("REFUND_UNDER_WAY")
  const [free] = /tilld refunds drop ref_\S+/.exec(yield* why(id)) ?? []
  const dropped = yield* tilldJson<RefundObject>([...(free ?? "").split(" ").slice(1), ...config])
  expect(dropped).toMatchObject({ id: begun[0]?.id, status: "failed" })
  expect(yield* exception(id)).toMatchObject({ amount: `${400n * usd}` })
  yield* sent("plan")
  expect(yield* exception(id)).toMatchObject({ resolution: "refunded" })
  expect(yield* has).toBe(400n * usd)
})

liveTest("pays refunds that were noted for a receiver, and collects what none of them holds", function* () {
  const { broadcast, chain, config, paid, plan, planIn, planning, sent, sign } = yield* openShop()
  const payments = yield* Effect.all([paid("USDC", 25n * usd), paid("USDC", 40n * usd), paid("USDT", 40n * usd)], {
    concurrency: "unbounded"
  })
  const [usdc, kept, usdt] = payments
  const customers = [someone(), someone()] as const
  const noting = ({ id }: PaymentObject, amount: bigint, ...more: ReadonlyArray<string>) =>
    Effect.map(
      onceDeep(["payments", "refunded", id, "--amount", `${amount * usd}`, ...more, "--json", ...config]),
      ({ code, stderr, stdout }) => (code === 0 ? JSON.parse(stdout).refund : expect.fail(stderr)) as RefundObject
    )
  const first = yield* noting(usdc, 10n, "--to", customers[0])
  const beside = yield* noting(usdc, 3n, "--to", customers[1])
  const second = yield* noting(usdt, 15n, "--to", customers[1])
  // Without a receiver: sent by hand from elsewhere, of which nothing was seen yet.
  const unseen = yield* noting(kept, 5n)
  const none = yield* tilld(planning("none", "--refund", unseen.id))
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("--to must say where the money goes")])

  const destination = someone()
  const held = [
    { amount: `${13n * usd}`, currency: "USDC" },
    { amount: `${5n * usd}`, currency: "USDC" },
    { amount: `${15n * usd}`, currency: "USDT" }
  ]
  const leaves = Effect.fnUntraced(function* (name: string, expected: typeof held) {
    const { leftOut } = yield* plan(name, "--to", destination, "--min-usd", "1")
    const holding = leftOut.filter(({ why }) => why.endsWith("has a refund that the chain does not show yet"))
    expect(holding.map(({ amount, currency }) => ({ amount, currency }))).toEqual(expected)
  })
  yield* leaves("before", held)

  expect(yield* plan("one", "--refund", first.id)).toMatchObject({ moves: 1 })
  expect(planIn("one")).toMatchObject({ destination: customers[0], moves: [{ refund: first.id }] })
  expect(yield* plan("all", "--refund", "all")).toMatchObject({ moves: 3 })
  const made = planIn("all")
  expect(made.moves.map(({ refund, to = made.destination }) => [refund, to])).toEqual([
    [first.id, customers[0]],
    [beside.id, customers[1]],
    [second.id, customers[1]]
  ])
  yield* sign("all")
  // Begun, and killed before anything was sent: its money stays too.
  expect((yield* broadcast("all", killedAt(1))).signal).toBe("SIGKILL")
  yield* leaves("begun", held)
  const { transfers } = yield* sent("all")
  expect(yield* chain.tokenBalance("USDC", customers[0])).toBe(10n * usd)
  expect(yield* chain.tokenBalance("USDT", customers[1])).toBe(15n * usd)
  const refunds = yield* tilldJson<ReadonlyArray<RefundObject>>(["refunds", "list", "--mode", "test", ...config])
  expect(new Map(refunds.map(({ from, id, txHash }) => [id, [from, txHash]]))).toEqual(
    new Map<string | undefined, ReadonlyArray<string | undefined>>([
      [unseen.id, [undefined, undefined]],
      ...transfers.map(({ address, hash, refund }) => [refund, [address, hash]] as const)
    ])
  )
  expect((yield* tilld(planning("again", "--refund", "all"))).stderr).toContain("No refund on this chain was noted")
  // What a wallet of the seed has sent is no longer there, and the rest is collected.
  yield* leaves("after", held.slice(1, 2))
  yield* sign("after")
  yield* sent("after")
  expect(yield* chain.tokenBalance("USDC", destination)).toBe(47n * usd)
  expect(yield* chain.tokenBalance("USDT", destination)).toBe(25n * usd)
  expect(yield* chain.tokenBalance("USDC", kept.address as Address)).toBe(5n * usd)
})

liveTest(
  "a refund's transaction is looked up on the chain, and the money of one that is not found stays",
  function* () {
    const { chain, daemon, home, paid, plan } = yield* openShop()
    const [one, two] = [yield* paid("USDC", 25n * usd), yield* paid("USDC", 25n * usd)]
    const [customer, wallet] = [someone(), yield* chain.rpc<ReadonlyArray<Address>>("eth_accounts")]
    const noting = ({ id }: PaymentObject, amount: bigint, txHash: string) =>
      Effect.map(
        eventually(
          daemon.call<RefundObject>("POST", `/v1/payments/${id}/refunds`, { amount: `${amount * usd}`, txHash }),
          ({ status }) => status < 300
        ),
        ({ body }) => body.id
      )
    const becomes = (id: string, status: RefundObject["status"]) =>
      eventually(
        Effect.map(daemon.call<RefundObject>("GET", `/v1/refunds/${id}`), ({ body }) => body),
        (found) => found.status === status
      )
    const none = yield* noting(one, 5n, `0x${"deadbeef".padStart(64, "0")}`)
    const database = new Database(home.database)
    database.prepare("UPDATE refunds SET changed_at = changed_at - 3600000 WHERE id = ?").run(none)
    database.close()
    const txHash = yield* chain.payToken({ symbol: "USDC", to: customer, amount: 10n * usd })
    const right = yield* becomes(yield* noting(one, 10n, txHash), "final")
    expect(right).toMatchObject({ to: customer, txHash })
    expect(wallet.map((address) => address.toLowerCase())).toContain(right.from?.toLowerCase())
    // Its transfer is one refund, and another customer's payment is none.
    const again = yield* becomes(yield* noting(two, 10n, txHash), "failed")
    const income = yield* becomes(yield* noting(two, 25n, one.txHash ?? ""), "failed")
    for (const { problem } of [again, income]) expect(problem).toContain("another refund, or money of yours")
    expect((yield* becomes(none, "not_found")).problem).toContain("has had no transaction")
    const { leftOut } = yield* plan("rest", "--to", someone(), "--min-usd", "1")
    const held = leftOut.filter(({ why }) => why.endsWith("has a refund that the chain does not show yet"))
    expect(held).toMatchObject([{ address: one.address, amount: `${5n * usd}` }])
  }
)
