import { expect, it } from "@effect/vitest"
import { Clock, Effect, Exit, Stream } from "effect"
import * as Balances from "../../src/Chains/balances/BalancesRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { PaymentId } from "../../src/Domain/Ids.ts"
import { addUp, worthText } from "../../src/Domain/LedgerRow.ts"
import { iso } from "../../src/lib/moment.ts"
import { csvLine } from "../../src/lib/text.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { filePieces } from "../../src/Portal/listed.tsx"
import { StoreUnavailable } from "../../src/Sql.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite, liveTest } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { execute, inTransaction, rows, temporaryDatabase } from "../lib/store.ts"
import { admin, home, makePayment, openShop, portalApp, storeIncome, usdc, viewer } from "./shop.ts"

const network = { chain: "base", mode: "test" } as const
const hash = (n: number) => `0x${n.toString(16).padStart(64, "0")}`

/** The rows of a file by its head. */
const parsed = (text: string) => {
  const [head = "", ...lines] = text.trimEnd().split("\r\n")
  const names = head.split(",")
  return lines.map((line) => Object.fromEntries(line.split(",").map((cell, i) => [names[i] ?? "", cell])))
}

/** The base units and the worth of what a page says next to a title. */
const shownIn = (text: string, title: string) => {
  const [, worth = "", tokens = ""] =
    new RegExp(`${title}.*?<p class="big">(.*?)</p>.*?<ul>(.*?)</ul>`, "s").exec(text) ?? []
  return [worth, ...[...tokens.matchAll(/class="money">(.*?)</g)].map(([, money = ""]) => money)]
}

/** What home, the list of payments, the file and the API say of the income. */
const said = Effect.gen(function* () {
  const api = yield* TestApi
  const ada = yield* admin
  const key = yield* api.newKey("test")
  const inFile = parsed((yield* ada.get(`${home}/ledger.csv`)).text)
  const signed = ({ credited, kind }: Record<string, string>) => BigInt(credited || 0) * (kind === "refund" ? -1n : 1n)
  const { body } = yield* api.call("GET", "/v1/ledger?limit=100", { key })
  const { income, sums } = addUp(body.data)
  return {
    home: shownIn((yield* ada.get(home)).text, ">Income<"),
    list: shownIn((yield* ada.get(`${home}/payments`)).text, "Their income"),
    ledger: shownIn((yield* ada.get(`${home}/ledger`)).text, "Income of all these rows"),
    file: [
      inFile.reduce((sum, row) => sum + signed(row), 0n),
      inFile.reduce((sum, row) => sum + Number(row.income), 0)
    ],
    api: [sums.map((sum) => sum.income), Array.from(income.values(), worthText)].flat()
  }
})

/** Seven payments of 5 USDC, and what became of each. */
const month = Effect.gen(function* () {
  const api = yield* TestApi
  const settlement = yield* Settlement
  yield* Effect.forkScoped(settlement.expire)
  const now = yield* Clock.currentTimeMillis
  const block = (number: number) => ({ number, hash: `0x${number}`, time: Math.floor(now / 1000) + number - 200 })
  yield* inTransaction(LedgerRepo.startScan(network, block(100), undefined))
  const of = (merchantRef: string) => makePayment({ merchantRef, amount: 5_000_000n })
  const names = ["exact", "over", "over and accepted", "under", "late", "late and back", "refunded"]
  const payments = yield* Effect.forEach(names, of, { concurrency: 1 })
  const [, over, accepted, under, late, lateBack, refunded] = payments.map(({ id }) => id)
  yield* execute("UPDATE payments SET created_at = ?, expires_at = ? WHERE merchant_ref LIKE 'late%'", [1000, 2000])
  const came = [5, 7, 8, 3, 5, 4, 5].map((amount, i) => ({
    ...{ address: payments[i]?.address.toLowerCase() ?? "", amount: BigInt(amount) * 1_000_000n },
    ...{ blockHash: "0x110", blockNumber: 110, blockTime: block(110).time, txHash: hash(i + 1) },
    ...{ currency: "USDC", position: `log:${i}`, place: i, sender: `0x${"7".repeat(40)}` }
  }))
  yield* inTransaction(
    Effect.gen(function* () {
      const touched = yield* LedgerRepo.keepReceipts(network, came, true)
      yield* LedgerRepo.keepBlocks(network, [block(190), block(200)])
      yield* LedgerRepo.moveScan(network, block(200))
      yield* Balances.moveChecked(network, block(200))
      yield* settlement.settle({ network, head: block(200) }, touched)
    })
  )
  const open = rows<{ id: string }>("SELECT id FROM payments WHERE merchant_ref LIKE 'late%' AND status <> 'expired'")
  yield* Effect.repeat(Effect.zipRight(eventLoopTurn, open), { until: (left) => left.length === 0, times: 2000 })
  const key = yield* api.newKey("test")
  const send = (path: string, json: object) =>
    Effect.map(api.call("POST", path, { key, json }), ({ status, text }) => expect(status, text).toBeLessThan(300))
  const decide = Effect.fnUntraced(function* (payment: PaymentId | undefined, action: "accept" | "refund") {
    const [{ id } = { id: "" }] = yield* rows<{ id: string }>("SELECT id FROM exceptions WHERE payment_id = ?", [
      payment ?? ""
    ])
    yield* send(`/v1/exceptions/${id}/resolve`, { action })
  })
  yield* decide(over, "refund")
  yield* decide(accepted, "accept")
  yield* send(`/v1/payments/${under}/refunds`, { amount: "1000000" })
  yield* decide(late, "accept")
  yield* decide(lateBack, "refund")
  yield* send(`/v1/payments/${refunded}/refunds`, { amount: "2000000" })
})

const appAt = (path: string, rate: string) =>
  testApp(
    { chains: [testChain({ tokens: [usdc] })], rates: testRates({ USDC: rate, EUR: "1.25" }) },
    Effect.succeed(path)
  )

liveTest("home, the list's sum, the file and the API have the same income, which no later rate changes", function* () {
  const path = yield* temporaryDatabase
  // 5 exact, 5 of 7, 8, 2 of 3 so far, 5, 0 of 4, and 3 of 5.
  const same = {
    ...{ home: ["$27.86", "28.00 USDC"], list: ["$27.86", "28.00 USDC"], ledger: ["$27.86", "28.00 USDC"] },
    ...{ file: [28_000_000n, 27.86], api: [28_000_000n, "27.86"] }
  }
  yield* Effect.gen(function* () {
    yield* month
    expect(yield* said).toEqual(same)
  }).pipe(Effect.scoped, Effect.provide(appAt(path, "0.995")))
  yield* Effect.gen(function* () {
    yield* (yield* admin).post(`${home}/settings`, { currency: "EUR", timezone: "UTC" })
    expect(yield* said).toEqual(same)
  }).pipe(Effect.provide(appAt(path, "2")))
})

liveSuite(portalApp, "the portal's ledger", (test) => {
  test("has the rows of a month of the account's time zone, a page at a time, and all of them as a file", function* () {
    const { account, admin: ida, base } = yield* openShop
    yield* ida.post(`${base}/settings`, { timezone: "Pacific/Kiritimati", currency: "USD" })
    const { id } = yield* makePayment({ merchantRef: "=1+1" }, { account, mode: "test" })
    const first = Date.UTC(2026, 9, 31, 10)
    yield* Effect.forEach(
      Array.from({ length: 120 }, (_, n) => n),
      (n) => storeIncome(id, { amount: "1000000", at: first + n * 1000 }),
      { concurrency: 1 }
    )
    yield* storeIncome(id, { amount: "7000000", at: first - 1000, rate: null })
    const page = yield* ida.get(`${base}/ledger?month=2026-11`)
    expect(shownIn(page.text, "Income of all these rows")).toEqual(["$120.00", "120.00 USDC"])
    const reached = [page.text]
    for (let [, next] = /href="([^"]*)" rel="next"/.exec(page.text) ?? []; next !== undefined; ) {
      const { text } = yield* ida.get(next.replaceAll("&amp;", "&"))
      reached.push(text)
      next = /href="([^"]*)" rel="next"/.exec(text)?.[1]
    }
    expect(reached.map((text) => text.match(/<th scope="row">/g)?.length)).toEqual([50, 50, 20])
    const file = yield* ida.get(`${base}/ledger.csv?month=2026-11`)
    expect(file.headers["content-type"]).toContain("text/csv")
    expect(file.headers["content-disposition"]).toBe('attachment; filename="ledger-test-2026-11.csv"')
    expect(file.headers["cache-control"]).toBe("no-store")
    const lines = parsed(file.text)
    expect(lines).toHaveLength(120)
    expect(lines.at(-1)).toMatchObject({ account, payment: id, merchantRef: "'=1+1", at: iso(first), income: "1.00" })
    const before = (yield* ida.get(`${base}/ledger?month=2026-10`)).text
    expect(before).toContain("7.00 USDC")
    expect(before).toContain("Worth not known")
    expect(before).toContain("no fresh price")
  })

  test("is narrowed by kind, chain, currency and payment, and says what is wrong", function* () {
    const vera = yield* viewer
    const { id } = yield* makePayment()
    yield* storeIncome(id, { amount: "3000000", at: 1_700_000_000_000 })
    for (const [filter, count] of [
      [`payment=${id}`, 1],
      [`payment=${id}&kind=receipt&chain=base&currency=USDC`, 1],
      [`payment=${id}&kind=refund`, 0],
      [`payment=${id}&chain=polygon`, 0],
      [`payment=${id}&currency=DAI`, 0]
    ] as const) {
      const page = (yield* vera.get(`${home}/ledger?${filter}`)).text
      expect([filter, page.match(/<th scope="row">/g)?.length ?? 0]).toEqual([filter, count])
      expect(shownIn(page, "Income of all these rows")).toEqual(count === 0 ? [""] : ["$3.00", "3.00 USDC"])
      expect(parsed((yield* vera.get(`${home}/ledger.csv?${filter}`)).text)).toHaveLength(count)
    }
    for (const path of ["/ledger?month=2026-13", "/ledger.csv?month=2026-13", "/ledger?cursor=nonsense"]) {
      expect((yield* vera.get(home + path)).status).toBe(400)
    }
    expect((yield* vera.get(`${home}/ledger?month=2026-13`)).text).toContain("The filter month must be a month such as")
  })

  test("ends its file with the store's failure, so that a part cannot pass for the whole", function* () {
    const pieces = filePieces("a\r\n", (after: number | undefined) =>
      after === undefined ? Effect.succeed(["1\r\n", 1]) : new StoreUnavailable({ code: "SQLITE_IOERR", message: "" })
    )
    expect(Exit.isFailure(yield* Effect.exit(Stream.runDrain(pieces)))).toBe(true)
  })
})

it("a file quotes what has to be quoted, and takes the meaning from what a spreadsheet would run", () => {
  const cells = {
    plain: "plain",
    "a,b": '"a,b"',
    'say "x"': '"say ""x"""',
    "=SUM(A1)": "'=SUM(A1)",
    "+1": "'+1",
    "-1+2": "'-1+2",
    "-25.00": "-25.00",
    "@x": "'@x",
    "\tx": "'\tx",
    "\rx": `"'\rx"`,
    "=a,b": `"'=a,b"`,
    "＝1": "'＝1"
  }
  expect(Object.fromEntries(Object.keys(cells).map((cell) => [cell, csvLine([cell]).slice(0, -2)]))).toEqual(cells)
})
