// Invoices of shop plugins that no one pays, or whose money a reorg takes: in process, against a real store.
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { awaiting } from "../../src/Greenfield/PluginInvoicesRepo.ts"
import { Invoices } from "../../src/Invoices.ts"
import { Reader } from "../../src/Sql.ts"
import { testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testRates } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"
import { startScans, tick } from "../Payments/settling.ts"
import { mine, nextHead, plugin, toldOf } from "./shopSystem.ts"

const order = Effect.gen(function* () {
  const { ofStore } = yield* plugin()
  yield* startScans(nextHead(), { chain: "base", mode: "test" })
  const hook = yield* ofStore("POST", "webhooks", { url: "https://shop.example/hook" })
  expect(hook.status).toBe(200)
  const checkout = { paymentMethods: ["ETH-BASE"], expirationMinutes: 5 }
  const { body } = yield* ofStore("POST", "invoices", { amount: "25", currency: "USD", checkout })
  const id: string = body.id
  const [method] = (yield* ofStore("GET", `invoices/${id}/payment-methods`)).body
  const state = Effect.map(ofStore("GET", `invoices/${id}`), ({ body }) => [body.status, body.additionalStatus])
  const kinds = Effect.map(toldOf(id), (all) => all.map(({ type }) => type))
  return { address: method.destination.toLowerCase(), id, kinds, state }
})

const received = ["InvoiceReceivedPayment", "InvoiceProcessing"]
const settled = ["InvoicePaymentSettled", "InvoiceSettled"]

liveSuite(testApp({ rates: testRates({ ETH: "2500", USDC: "1" }) }), "an invoice of a shop plugin", (test) => {
  test("goes back without a word where a reorg takes its money, which is told again once it is mined again", function* () {
    const { address, kinds, state } = yield* order
    const mined = (at: number, fork: string) => ({
      ...{ address, amount: 10_000_000_000_000_000n, blockHash: `0x${at}${fork}`, blockNumber: at, blockTime: at },
      ...{ currency: "ETH", position: "tx:0", txHash: `0x${"e".repeat(64)}` }
    })
    const at = nextHead()
    yield* tick({ head: at, transfers: [mined(at, "")] })
    expect(yield* state).toEqual(["Processing", "None"])
    yield* tick({ head: at + 1, ancestor: at - 1 })
    expect([yield* state, yield* kinds]).toEqual([
      ["New", "None"],
      ["InvoiceCreated", ...received]
    ])
    yield* tick({ head: at + 2, transfers: [mined(at + 2, "b")] })
    expect(yield* state).toEqual(["Processing", "None"])
    yield* mine
    expect([yield* state, yield* kinds]).toEqual([
      ["Settled", "None"],
      ["InvoiceCreated", ...received, ...received, ...settled]
    ])
  })

  test("expires with nothing paid, and says so", function* () {
    const { id, kinds, state } = yield* order
    // As if it had been made two hours ago; its payment has ended with it.
    yield* execute("UPDATE payments SET status = 'expired', ended_at = expires_at WHERE invoice_id = ?", [id])
    yield* execute(
      "UPDATE invoices SET created_at = created_at - 7200000, expires_at = expires_at - 7200000 WHERE id = ?",
      [id]
    )
    const invoices = yield* Invoices
    yield* Effect.forkScoped(invoices.run)
    yield* Effect.repeat(state, { until: ([status]) => status === "Expired" })
    expect(yield* state).toEqual(["Expired", "None"])
    expect(yield* kinds).toEqual(["InvoiceCreated", "InvoiceExpired"])
    expect((yield* toldOf(id)).at(-1)).toMatchObject({ partiallyPaid: false })
  })

  test("is looked at before older ones where its late money is not certain: that of some never is", function* () {
    const ids = [(yield* order).id, (yield* order).id]
    for (const [i, id] of ids.entries()) {
      yield* execute("UPDATE plugin_invoices SET awaiting = 1, created_at = ? WHERE invoice_id = ?", [i, id])
    }
    expect(yield* awaiting(yield* Reader, 1)).toEqual([ids[1]])
  })
})
