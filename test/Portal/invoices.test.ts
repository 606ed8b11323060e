import { expect } from "@effect/vitest"
import { defaultAccount } from "../../src/Auth.ts"
import { Invoices } from "../../src/Invoices.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { rows } from "../lib/store.ts"
import { admin, home, portalApp, viewer } from "./shop.ts"

const owner = { account: defaultAccount, mode: "test" } as const

liveSuite(portalApp, "the portal's invoices", (test) => {
  test("are made by hand: a price, for which the customer chooses what to pay in", function* () {
    const ada = yield* admin
    const form = (yield* ada.get(`${home}/payments/new`)).text
    expect(form).toContain('<option value="USD" selected')
    expect(form).toContain("what the customer chooses</option>")
    const typed = { merchantRef: "order 8", amount: "25,00", priced: "EUR", expiresIn: "21600" }
    const made = yield* ada.post(`${home}/payments/new`, typed)
    const [, path = "", id] = /(\/invoices\/(inv_[^?]+))\?done=invoiced$/.exec(String(made.headers.location)) ?? []
    expect(made.status).toBe(303)
    expect(
      yield* rows("SELECT merchant_ref, amount, currency, expires_at - created_at AS time FROM invoices WHERE id = ?", [
        id ?? ""
      ])
    ).toEqual([{ merchant_ref: "order 8", amount: "25.00", currency: "EUR", time: 21_600_000 }])
    const [act] = yield* rows<{ act: string; detail: string }>(
      "SELECT act, detail FROM audit WHERE act = 'invoices create'"
    )
    expect(JSON.parse(act?.detail ?? "")).toEqual({ merchantRef: "order 8", price: "25.00 EUR", id })

    const page = yield* (yield* viewer).get(`${home}${path}`)
    for (const text of ["€25.00", "not chosen yet", "/pay/", "Nobody has chosen yet", "USDC-base"]) {
      expect(page.text).toContain(text)
    }
    // A viewer may not cancel.
    expect(page.text).not.toContain(`${path}/cancel`)
    const again = yield* ada.post(`${home}/payments/new`, typed)
    expect([again.status, again.text.includes(`Reference is the one of ${id} already`)]).toEqual([400, true])
    for (const [over, problem, status] of [
      [{ amount: "25.001" }, "Amount must have at most 2 decimals", 400],
      [{ amount: "many" }, "Amount must be a number above zero such as 49.90", 422],
      [{ priced: "CHF" }, "CHF is off here", 400]
    ] as const) {
      const wrong = yield* ada.post(`${home}/payments/new`, { ...typed, merchantRef: "order 9", ...over })
      expect([problem, wrong.status, wrong.text.includes(problem)]).toEqual([problem, status, true])
    }
  })

  test("have their payment at once where token and network were chosen, unless there is no price", function* () {
    const ada = yield* admin
    const typed = { merchantRef: "order 11", amount: "25", priced: "USD", asset: "USDC-base" }
    const made = yield* ada.post(`${home}/payments/new`, typed)
    const [, id = ""] = /\/payments\/(pay_[^?]+)\?done=created$/.exec(String(made.headers.location)) ?? []
    expect(yield* rows("SELECT amount, chain, invoice_id IS NULL AS bare FROM payments WHERE id = ?", [id])).toEqual([
      { amount: "25000000", chain: "base", bare: 0 }
    ])
    const unpriced = yield* ada.post(`${home}/payments/new`, { ...typed, merchantRef: "order 12", priced: "EUR" })
    expect(unpriced.headers.location).toMatch(/\/invoices\/inv_[^?]+\?done=invoiced$/)
  })

  test("show the choice, the rate and all payments, in the list and on their page", function* () {
    const invoices = yield* Invoices
    const { invoice } = yield* invoices.create(owner, {
      ...{ price: { amount: "12.50", currency: "USD" }, merchantRef: "order 10" }
    })
    yield* invoices.choose(owner, invoice.id, { currency: "USDC", chain: "base" })
    const ada = yield* admin
    const list = (yield* ada.get(`${home}/invoices`)).text
    for (const text of ["order 10", "$12.50", "USDC on Base"]) expect(list).toContain(text)
    expect((yield* ada.get(`${home}/invoices?status=paid`)).text).toContain("No invoice has this status.")
    const { text } = yield* ada.get(`${home}/invoices/${invoice.id}`)
    for (const part of ["1 USDC for 1 USD", "12.5", "pending"]) expect(text).toContain(part)
    expect((yield* ada.get(`${home}/invoices/inv_none`)).status).toBe(404)
  })

  test("are cancelled with their open payment, once a person has confirmed it", function* () {
    const invoices = yield* Invoices
    const { invoice } = yield* invoices.create(owner, { price: { amount: "1", currency: "USD" } })
    yield* invoices.choose(owner, invoice.id, { currency: "USDC", chain: "base" })
    const ada = yield* admin
    const path = `${home}/invoices/${invoice.id}/cancel`
    expect((yield* ada.get(path)).text).toContain("This cannot be undone.")
    expect((yield* ada.post(path, {})).headers.location).toContain("done=ended")
    const found = yield* invoices.get(owner, invoice.id)
    expect([found?.invoice.status, found?.payments[0]?.failureReason]).toEqual(["cancelled", "cancelled"])
    expect((yield* (yield* viewer).post(path, {})).status).toBe(403)
  })
})
