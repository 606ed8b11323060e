import { expect, it } from "@effect/vitest"
import { Effect, Exit, Stream } from "effect"
import { iso } from "../../src/lib/moment.ts"
import { csvLine } from "../../src/lib/text.ts"
import { filePieces } from "../../src/Portal/answers.tsx"
import { StoreUnavailable } from "../../src/Sql.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { home, makePayment, openShop, portalApp, shownIn, storeIncome, viewer } from "./shop.ts"

/** The rows of a file by its head. */
const parsed = (text: string) => {
  const [head = "", ...lines] = text.trimEnd().split("\r\n")
  const names = head.split(",")
  return lines.map((line) => Object.fromEntries(line.split(",").map((cell, i) => [names[i] ?? "", cell])))
}

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
