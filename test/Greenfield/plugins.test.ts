// What seven shop plugins send, in their order and form, and the answers that make their next step work. The kinds of values count:
// the PHP SDK of six of them is strict about text and numbers.
import { expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { getAddress } from "viem"
import type { PluginPermission } from "../../src/Domain/Plugin.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { liveXpub, testChain, testRates, testSettings } from "../lib/settings.ts"
import { rows } from "../lib/store.ts"
import { startScans } from "../Payments/settling.ts"
import { mine, nextHead, payEth, plugin, wooPermissions } from "./shopSystem.ts"

const usdc = { symbol: "USDC", address: getAddress(`0x${"a".repeat(40)}`), decimals: 6 } as const
const app = testApp({
  chains: [testChain({ tokens: [usdc] }), testChain({ mode: "live", chainId: 8453, tokens: [usdc] })],
  rates: testRates({ USDC: "1", ETH: "2500", EUR: "1.25" }),
  wallets: { ...testSettings("").wallets, live: Redacted.make(liveXpub) }
})

const short = (...names: ReadonlyArray<string>) => names.map((name) => `btcpay.store.${name}` as PluginPermission)

const price = 12_500_000_000_000_000n

/** The kinds of event that W, H and O ask for. */
const six = [
  ...["InvoiceReceivedPayment", "InvoicePaymentSettled", "InvoiceProcessing"],
  ...["InvoiceExpired", "InvoiceSettled", "InvoiceInvalid"]
]

/** A plugin on the PHP SDK: each request has these headers, also those without a body. */
const php = (permissions: ReadonlyArray<PluginPermission>) =>
  Effect.gen(function* () {
    yield* startScans(nextHead(), { chain: "base", mode: "test" })
    const { call, key, store } = yield* plugin(permissions)
    const headers = {
      ...{ accept: "application/json", "content-type": "application/json", authorization: `token ${key}` },
      "user-agent": "BTCPayServer-Greenfield-PHP"
    }
    const api = (method: string, path: string, json?: object) =>
      call(method, `/api/v1/${path}`, { headers, ...(json && { body: JSON.stringify(json) }) })
    const ok = (method: string, path: string, json?: object) =>
      Effect.map(api(method, `stores/${store}/${path}`, json), ({ body, status, text }) => {
        expect([method, path, status, status === 200 ? "" : text]).toEqual([method, path, 200, ""])
        return body
      })
    const permitted = permissions.map((permission) => `${permission}:${store}`).toSorted()
    return { api, call, key, ok, permitted, store }
  })

/** As the SDK registers a webhook: all kinds, or these. */
const webhook = (url: string, secret?: string, specificEvents?: ReadonlyArray<string>) => ({
  ...{ enabled: true, automaticRedelivery: true, url },
  authorizedEvents: specificEvents ? { everything: false, specificEvents } : { everything: true },
  ...(secret && { secret })
})

/** As the SDK asks for an invoice: what was not set is null. */
const request = (amount: string, metadata: object | null, checkout: object) => ({
  ...{ amount, currency: "EUR", metadata },
  checkout: {
    ...{ speedPolicy: null, paymentMethods: null, expirationMinutes: null, monitoringMinutes: null },
    ...{ paymentTolerance: null, redirectURL: null, redirectAutomatically: null, defaultLanguage: null },
    ...checkout
  }
})

const decimal = /^-?\d+(\.\d+)?$/
/** What `bcmul` takes, and what strict accessors return. */
const checkMethod = (method: Record<string, unknown>) => {
  for (const name of ["rate", "amount", "paymentMethodPaid", "totalPaid", "due", "networkFee", "paymentMethodFee"]) {
    expect([name, method[name]]).toEqual([name, expect.stringMatching(decimal)])
  }
  for (const name of ["destination", "paymentMethod", "paymentMethodId", "currency"]) {
    expect([name, method[name]]).toEqual([name, expect.any(String)])
  }
  for (const one of method["payments"] as ReadonlyArray<Record<string, unknown>>) {
    expect(one).toEqual({
      ...{ id: expect.stringMatching(/^0x[0-9a-f]+-\d+$/), receivedDate: expect.any(Number) },
      ...{ value: expect.stringMatching(decimal), fee: "0", destination: expect.any(String) },
      status: expect.stringMatching(/^(Processing|Settled|Invalid)$/)
    })
  }
}

/** What strict accessors of an invoice return. */
const checkInvoice = (invoice: Record<string, unknown>) =>
  expect(invoice).toMatchObject({
    ...{ id: expect.stringMatching(/^[A-Za-z0-9_-]+$/), amount: expect.stringMatching(decimal), type: "Standard" },
    ...{ createdTime: expect.any(Number), expirationTime: expect.any(Number), archived: false },
    ...{ checkoutLink: expect.stringMatching(/\/i\/[A-Za-z0-9_-]+$/), additionalStatus: expect.any(String) }
  })

/** A customer pays by ETH: chooses as the page does, sends all, and waits. Gives the messages for the shop's webhook. */
const customerPays = Effect.fnUntraced(function* (
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks into, field by field
  ok: (method: string, path: string, json?: object) => Effect.Effect<any>,
  invoice: string,
  hook: string,
  onPaid: Effect.Effect<unknown> = Effect.void
) {
  const [method] = yield* ok("POST", `invoices/${invoice}/payment-methods/ETH-BASE/activate`, {})
  yield* payEth(method.destination, price)
  yield* onPaid
  yield* mine
  const all = yield* rows<{ body: string }>(
    `SELECT e.body FROM deliveries d JOIN events e ON e.id = d.event_id WHERE e.payment_id = ? AND d.endpoint_id = ?
     ORDER BY e.sequence`,
    [invoice, hook]
  )
  return all.map(({ body }) => JSON.parse(body))
})

const kindsOf = (told: ReadonlyArray<{ readonly type: string }>) => told.map(({ type }) => type)
const paidKinds = ["InvoiceReceivedPayment", "InvoiceProcessing", "InvoicePaymentSettled", "InvoiceSettled"]

liveSuite(app, "shop plugins", (test) => {
  test("WooCommerce: connects, pays with all methods, reuses and gives up an invoice, refunds", function* () {
    const { api, call, ok, permitted, store } = yield* php(wooPermissions)
    expect((yield* api("GET", "stores")).body).toMatchObject([{ id: store }])
    const url = "https://shop.example/?wc-api=btcpaygf_default"
    const hook = yield* ok("POST", "webhooks", webhook(url, undefined, six))
    expect(hook).toMatchObject({ id: expect.stringMatching(/^[A-Za-z0-9_-]+$/), url, secret: expect.any(String) })
    expect(yield* ok("GET", `webhooks/${hook.id}`)).toMatchObject({ id: hook.id, url })
    const methods: ReadonlyArray<{ paymentMethodId: string }> = yield* ok("GET", "payment-methods")
    // They become names of PHP classes.
    const ids = methods.map(({ paymentMethodId }) => paymentMethodId.replaceAll("-", "_"))
    expect(ids).toEqual(["ETH_BASE", "USDC_BASE"])
    expect(methods).toMatchObject([{ enabled: true }, { enabled: true }])
    const posData = JSON.stringify({ WooCommerce: { "Order ID": 1001 } })
    const orderUrl = "https://shop.example/wp-admin/post.php?post=1001&action=edit"
    const redirectURL = "https://shop.example/checkout/order-received/1001/?key=wc_order_x"
    const metadata = { taxIncluded: 3.99, posData, orderUrl, orderId: "1001" }
    const invoice = yield* ok("POST", "invoices", request("25.00", metadata, { redirectURL, paymentMethods: ids }))
    checkInvoice(invoice)
    expect(invoice.metadata).toEqual(metadata)
    // The customer comes back to the shop's checkout: the invoice is used again where it is open and of the same methods.
    const again = yield* ok("GET", `invoices/${invoice.id}`)
    expect(["Expired", "Invalid"]).not.toContain(again.status)
    expect(again.checkout.paymentMethods.map((id: string) => id.replace("-", "_")).toSorted()).toEqual(ids)
    expect((yield* call("GET", `/i/${invoice.id}`)).status).toBe(303)
    const told = yield* customerPays(ok, invoice.id, hook.id)
    expect(kindsOf(told)).toEqual(paidKinds)
    expect(told[1].overPaid).toBe(false)
    const [paid] = yield* ok("GET", `invoices/${invoice.id}/payment-methods`)
    checkMethod(paid)
    expect([Number(paid.paymentMethodPaid) > 0, paid.payments.length]).toEqual([true, 1])

    expect((yield* api("GET", "server/info")).body.version).toBe("2.4.1")
    expect((yield* api("GET", "api-keys/current")).body.permissions.toSorted()).toEqual(permitted)
    const refund = {
      ...{ name: "Refund of order 1001; ", description: null, amount: "5.00", currency: "EUR", period: null },
      ...{ BOLT11Expiration: null, autoApproveClaims: false, startsAt: null, expiresAt: null },
      ...{ paymentMethods: ids, payoutMethods: ids }
    }
    const pull = yield* ok("POST", "pull-payments", refund)
    expect(pull).toMatchObject({ id: expect.any(String), viewLink: expect.stringMatching(/\/pull-payments\//) })
    const unknown = yield* api("POST", `stores/${store}/pull-payments`, { ...refund, name: "Remboursement; 1002" })
    expect([unknown.status, unknown.body]).toMatchObject([422, [{ path: "name", message: expect.any(String) }]])

    // The customer changes the method: the invoice is marked, and another is made for the same order.
    const other = yield* ok("POST", "invoices", request("25.00", { orderId: "1003" }, { paymentMethods: ["ETH_BASE"] }))
    expect((yield* ok("POST", `invoices/${other.id}/status`, { status: "Invalid" })).status).toBe("Invalid")
    yield* ok("POST", "invoices", request("25.00", { orderId: "1003" }, { paymentMethods: ["USDC_BASE"] }))
  })

  test("PrestaShop: links, makes its order at the first message, and books what has settled", function* () {
    const permissions = short(
      ...["canmodifystoresettings", "webhooks.canmodifywebhooks", "canviewstoresettings"],
      ...["cancreateinvoice", "canviewinvoices", "canmodifyinvoices"]
    )
    const { api, ok, permitted, store } = yield* php(permissions)
    expect((yield* api("GET", "api-keys/current")).body.permissions.toSorted()).toEqual(permitted)
    const { fullySynched, version } = (yield* api("GET", "server/info")).body
    expect([typeof fullySynched, version]).toEqual(["boolean", "2.4.1"])
    expect((yield* ok("GET", "payment-methods")).length).toBeGreaterThan(0)
    expect((yield* api("GET", `stores/${store}/webhooks/unknown`)).status).toBe(404)
    const secret = "0f".repeat(24)
    const hook = yield* ok("POST", "webhooks", webhook("https://shop.example/module/btcpay/webhook", secret))
    expect(hook.secret).toBe(secret)
    expect((yield* ok("GET", `webhooks/${hook.id}`)).id).toBe(hook.id)
    expect((yield* api("GET", `stores/${store}`)).body.name).toEqual(expect.any(String))
    expect((yield* api("GET", `stores/${store}/rates/configuration/fallback`)).status).toBe(404)
    const redirectURL = "https://shop.example/module/btcpay/validation?invoice_reference=AbCdEfGhIjKlMnOpQrSt"
    const metadata = {
      ...{ posData: "4f0c8d", itemCode: "invoice-reference-AbC", itemDesc: "Purchase from Shop", taxIncluded: "4.2" },
      ...{ orderId: "AbCdEfGhIjKlMnOpQrSt", buyerEmail: "a@shop.example" }
    }
    const invoice = yield* ok("POST", "invoices", request("25", metadata, { speedPolicy: "MediumSpeed", redirectURL }))
    const told = yield* customerPays(
      ok,
      invoice.id,
      hook.id,
      Effect.map(ok("GET", `invoices/${invoice.id}`), ({ metadata, status }) =>
        expect([status, metadata.posData]).toEqual(["Processing", "4f0c8d"])
      )
    )
    expect(kindsOf(told)).toEqual(["InvoiceCreated", ...paidKinds])
    const [method] = yield* ok("GET", `invoices/${invoice.id}/payment-methods`)
    checkMethod(method)
    const [payment] = method.payments
    expect([payment.status, Number(payment.value) * Number(method.rate)]).toEqual(["Settled", 25])
    expect((yield* ok("GET", `invoices/${invoice.id}`)).status).toBe("Settled")
    expect((yield* api("DELETE", `stores/${store}/webhooks/${hook.id}`)).status).toBe(200)
  })

  test("Magento: compares permissions and its webhook, logs a payment, finds and marks by order", function* () {
    const permissions = short(
      ...["canviewinvoices", "cancreateinvoice", "webhooks.canmodifywebhooks", "canviewstoresettings"],
      "canmodifyinvoices"
    )
    const { api, ok, permitted, store } = yield* php(permissions)
    expect((yield* api("GET", "api-keys/current")).body.permissions.toSorted()).toEqual(permitted)
    expect((yield* api("GET", "stores")).body).toMatchObject([{ id: store }])
    const url = "https://shop.example/rest/V2/btcpay/webhook"
    const registered = Effect.map(ok("GET", "webhooks"), (all: ReadonlyArray<{ url: string }>) =>
      all.find((each) => each.url === url)
    )
    expect(yield* registered).toBeUndefined()
    const hook = yield* ok("POST", "webhooks", webhook(url, "ab".repeat(32)))
    expect(yield* registered).toMatchObject({
      ...{ enabled: true, automaticRedelivery: true, authorizedEvents: { everything: true, specificEvents: [] } }
    })
    const metadata = {
      ...{ buyerName: "ACME, A B", buyerState: null, buyerAddress2: null, physical: true, taxIncluded: true },
      ...{ magentoOrderId: "12", magentoStoreId: 1, orderId: "000000012", buyerEmail: "a@shop.example" }
    }
    const redirectURL =
      "https://shop.example/btcpay/redirect/returnafterpayment/orderId/12/invoiceId/{InvoiceId}/hash/x/"
    const checkout = { redirectURL, redirectAutomatically: true, defaultLanguage: "nl-NL" }
    const make = ok("POST", "invoices", request("25.0000", metadata, checkout))
    const invoice = yield* make
    expect([invoice.metadata, invoice.storeId, invoice.status]).toEqual([metadata, store, "New"])
    const [kept] = yield* rows<{ url: string }>("SELECT redirect_url AS url FROM invoices WHERE id = ?", [invoice.id])
    expect(kept?.url).toContain(`/invoiceId/${invoice.id}/hash/`)
    // Until a choice the page has each method, each of another currency; nothing is paid, and nothing is logged.
    for (const each of yield* ok("GET", `invoices/${invoice.id}/payment-methods`)) checkMethod(each)
    const logged = Effect.map(ok("GET", `invoices/${invoice.id}/payment-methods`), (all) => {
      expect(all.map(({ paymentMethod }: { paymentMethod: string }) => paymentMethod)).toEqual(["ETH-BASE"])
      expect(Number(all[0].totalPaid)).toBeGreaterThan(0)
    })
    expect(kindsOf(yield* customerPays(ok, invoice.id, hook.id, logged))).toEqual(["InvoiceCreated", ...paidKinds])
    const other = yield* make
    const found = yield* ok("GET", "invoices?orderId=000000012")
    expect(found.map(({ id, status }: { id: string; status: string }) => [id, status])).toEqual([
      [other.id, "New"],
      [invoice.id, "Settled"]
    ])
    expect(yield* ok("POST", `invoices/${other.id}/status`, { status: "Invalid" })).toMatchObject({ status: "Invalid" })
  })

  test("WHMCS: tests its typed key, and finds the same invoice as it ordered", function* () {
    const { api, ok, permitted } = yield* php(
      short("canviewinvoices", "cancreateinvoice", "webhooks.canmodifywebhooks")
    )
    expect((yield* api("GET", "api-keys/current")).body.permissions.toSorted()).toEqual(permitted)
    expect(yield* ok("GET", "invoices?take=1")).toEqual(expect.any(Array))
    const hook = yield* ok(
      "POST",
      "webhooks",
      webhook("https://shop.example/modules/gateways/callback/btcpay.php", undefined, six)
    )
    expect(hook.secret).toEqual(expect.any(String))
    const invoice = yield* ok("POST", "invoices", request("25.00", { orderId: "77" }, {}))
    checkInvoice(invoice)
    expect([Number(invoice.amount), invoice.currency, invoice.metadata.orderId]).toEqual([25, "EUR", "77"])
    const told = yield* customerPays(ok, invoice.id, hook.id)
    expect(told.at(-1)).toMatchObject({ type: "InvoiceSettled", invoiceId: invoice.id, manuallyMarked: false })
    const back = yield* ok("GET", `invoices/${invoice.id}`)
    const same = ["id", "storeId", "amount", "currency", "metadata", "type"] as const
    for (const name of same) expect(back[name]).toEqual(invoice[name])
    expect(back.status).toBe("Settled")
  })

  test("OpenCart: takes a store without a name, an amount of eight decimals, and deletes its webhook", function* () {
    const { api, ok, store } = yield* php(
      short("canmodifyinvoices", "canviewstoresettings", "webhooks.canmodifywebhooks")
    )
    expect((yield* api("GET", `stores/${store}`)).body.id).toBe(store)
    const url = "https://shop.example/index.php?route=extension/btcpay/payment/btcpay|callback"
    const hook = yield* ok("POST", "webhooks", webhook(url, undefined, six))
    expect([hook.url, typeof hook.id, typeof hook.secret]).toEqual([url, "string", "string"])
    const redirectURL = "https://shop.example/index.php?route=extension/btcpay/payment/btcpay|success&token=9b1d"
    const invoice = yield* ok("POST", "invoices", request("25.00000000", { orderId: "5" }, { redirectURL }))
    // An order whose total is still the invoice's uses it again.
    expect(Number((yield* ok("GET", `invoices/${invoice.id}`)).amount)).toBe(25)
    expect(kindsOf(yield* customerPays(ok, invoice.id, hook.id))).toEqual(paidKinds)
    expect(yield* ok("GET", `invoices/${invoice.id}`)).toMatchObject({ status: "Settled", additionalStatus: "None" })
    expect((yield* api("DELETE", `stores/${store}/webhooks/${hook.id}`)).status).toBe(200)
    expect((yield* api("DELETE", `stores/${store}/webhooks/${hook.id}`)).body.code).toBe("webhook-not-found")
  })

  test("Drupal: takes each message once, none older than the last, and an end that it knows", function* () {
    const permissions = short(
      ...["canviewinvoices", "cancreateinvoice", "canviewstoresettings", "webhooks.canmodifywebhooks"]
    )
    const { api, ok, permitted, store } = yield* php(permissions)
    expect((yield* api("GET", "api-keys/current")).body.permissions.toSorted()).toEqual(permitted)
    expect((yield* api("GET", `stores/${store}`)).body).toMatchObject({ id: store, name: expect.any(String) })
    const hook = yield* ok("POST", "webhooks", webhook("https://shop.example/payment/notify/btcpay", "cd".repeat(32)))
    const invoice = yield* ok("POST", "invoices", request("25.00", { orderId: "9" }, {}))
    const told = yield* customerPays(ok, invoice.id, hook.id)
    const times = told.map(({ timestamp }) => timestamp)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    for (const at of times) expect(Number.isInteger(at)).toBe(true)
    const deliveries = "SELECT d.id FROM deliveries d JOIN events e ON e.id = d.event_id WHERE e.payment_id = ?"
    const ids = yield* rows<{ id: string }>(deliveries, [invoice.id])
    expect(ids.length).toBeGreaterThanOrEqual(told.length)
    expect(Math.max(...ids.map(({ id }) => id.length))).toBeLessThan(256)
    const { additionalStatus, status } = yield* ok("GET", `invoices/${invoice.id}`)
    expect(["None", "PaidOver", "Marked"]).toContain(additionalStatus)
    expect(status).toBe("Settled")
  })

  test("Shopware: sends a URL alone and a number, and reads flags unasked", function* () {
    const { call, key, store } = yield* plugin(
      short("canmodifyinvoices", "canviewstoresettings", "webhooks.canmodifywebhooks")
    )
    yield* startScans(nextHead(), { chain: "base", mode: "test" })
    // Guzzle: no content type without a body.
    const headers = { authorization: `token ${key}` }
    const ok = (method: string, path: string, json?: object) =>
      Effect.map(call(method, `/api/v1/stores/${store}/${path}`, { headers, ...(json && { json }) }), (answer) => {
        expect([method, path, answer.status]).toEqual([method, path, 200])
        return answer.body
      })
    expect(yield* ok("GET", "invoices")).toEqual(expect.any(Array))
    const url = "https://shop.example/api/_action/coincharge/webhook-endpoint"
    const hook = yield* ok("POST", "webhooks", { url })
    expect(hook).toMatchObject({ url, enabled: true, secret: expect.any(String), id: expect.any(String) })
    expect((yield* ok("GET", `webhooks/${hook.id}`)).enabled).toBe(true)
    expect(yield* ok("GET", "payment-methods")).toEqual(expect.any(Array))
    const metadata = { orderId: "0189b6", orderNumber: "10001", transactionId: "0189c7" }
    const redirectURL = "https://shop.example/checkout/finish?orderId=0189b6"
    const checkout = { redirectURL, redirectAutomatically: true }
    const invoice = yield* ok("POST", "invoices", { amount: 25, currency: "EUR", metadata, checkout })
    expect(invoice.checkoutLink).toMatch(/^http/)
    const told = yield* customerPays(ok, invoice.id, hook.id)
    expect(told).toMatchObject([
      ...[{ type: "InvoiceCreated" }, { afterExpiration: false }, { overPaid: false }, { afterExpiration: false }],
      { manuallyMarked: false, overPaid: false }
    ])
    expect((yield* ok("GET", `invoices/${invoice.id}`)).metadata).toEqual(metadata)
  })

  test("a key may what it was asked for, and what that implies", function* () {
    const made = { amount: "25.00", currency: "EUR" }
    /** The permissions that reads, making, marking, settings, webhooks and refunds lack. */
    const lacks = Effect.fnUntraced(function* (...names: ReadonlyArray<string>) {
      const { api, store } = yield* plugin(short(...names))
      const asked: ReadonlyArray<readonly [method: string, path: string, json?: object]> = [
        ["GET", "invoices"],
        ["POST", "invoices", made],
        ["POST", "invoices/inv_none/status", { status: "Invalid" }],
        ["GET", "payment-methods"],
        ["GET", "webhooks"],
        ["POST", "pull-payments", { name: "1", amount: "1" }]
      ]
      const answers = yield* Effect.forEach(asked, ([method, path, json]) =>
        api(method, `stores/${store}/${path}`, json)
      )
      return answers.map(({ body, status }) => {
        expect(status === 403).toBe(body.code === "missing-permission")
        return status === 403 ? String(body.missingPermission).replace("btcpay.store.", "") : ""
      })
    })
    const hooks = "webhooks.canmodifywebhooks"
    const pull = "cancreatenonapprovedpullpayments"
    const [view, create, modify, settings] = [
      ...["canviewinvoices", "cancreateinvoice", "canmodifyinvoices", "canviewstoresettings"]
    ] as const
    expect(yield* lacks(view as string)).toEqual(["", create, modify, settings, hooks, pull])
    expect(yield* lacks(create as string)).toEqual([view, "", modify, settings, hooks, pull])
    expect(yield* lacks(modify as string)).toEqual(["", "", "", settings, hooks, pull])
    expect(yield* lacks(settings as string, hooks)).toEqual(["", create, modify, "", "", pull])
    expect(yield* lacks("canmodifystoresettings")).toEqual(["", "", "", "", "", ""])
    // W, P and M refuse a key with another list than theirs: it is told as it was given.
    for (const names of [[view], [view, create, modify, settings, hooks, "canmodifystoresettings"]]) {
      const { api, key, store } = yield* plugin(short(...(names as ReadonlyArray<string>)))
      const current = (yield* api("GET", "api-keys/current")).body
      expect(current.permissions.toSorted()).toEqual(names.map((name) => `btcpay.store.${name}:${store}`).toSorted())
      expect(current.apiKey).toBe(key)
    }
  })

  test("two accounts and two modes beside each other see nothing of one another", function* () {
    const { call, newAccount, newKey } = yield* TestApi
    const account = yield* newAccount("Other")
    const stores = [
      yield* plugin(wooPermissions),
      yield* plugin(wooPermissions, "live"),
      yield* plugin(wooPermissions, "test", account),
      yield* plugin(wooPermissions, "live", account)
    ]
    expect(new Set(stores.map(({ store }) => store)).size).toBe(4)
    const made = yield* Effect.forEach(stores, ({ ofStore }) =>
      Effect.gen(function* () {
        const hook = yield* ofStore("POST", "webhooks", { url: "https://shop.example/beside" })
        const invoice = yield* ofStore("POST", "invoices", {
          amount: "25",
          currency: "EUR",
          metadata: { orderId: "same" }
        })
        expect([hook.status, invoice.status]).toEqual([200, 200])
        return { hook: hook.body.id, invoice: invoice.body.id }
      })
    )
    for (const [i, { api, key, ofStore, store }] of stores.entries()) {
      expect((yield* api("GET", "stores")).body.map(({ id }: { id: string }) => id)).toEqual([store])
      const listed = (yield* ofStore("GET", "invoices?orderId=same")).body
      expect(listed.map(({ id }: { id: string }) => id)).toEqual([made[i]?.invoice])
      for (const [j, other] of stores.entries()) {
        const [own, notFound] = i === j ? [200, undefined] : [404, true]
        const { hook, invoice } = made[j] ?? { hook: "", invoice: "" }
        expect((yield* ofStore("GET", `invoices?textSearch=${invoice}`)).body).toHaveLength(i === j ? 1 : 0)
        for (const path of [`invoices/${invoice}`, `webhooks/${hook}`]) {
          const answer = yield* api("GET", path)
          expect([answer.status, notFound && answer.body.code.endsWith("-not-found")]).toEqual([own, notFound])
        }
        const theirs = yield* api("GET", `stores/${other.store}/invoices`)
        expect(theirs.status).toBe(i === j ? 200 : 403)
      }
      // Nor anything of the own API, whose keys have nothing here.
      for (const header of [{ "x-api-key": key }, { authorization: `Bearer ${key}` }]) {
        const own = yield* call("GET", "/v1/invoices", { headers: header })
        expect([401, 403]).toContain(own.status)
      }
    }
    const headers = { authorization: `token ${yield* newKey()}` }
    expect((yield* call("GET", "/api/v1/server/info", { headers })).status).toBe(404)
    for (const { invoice } of made.slice(0, 2)) {
      expect(
        (yield* rows("SELECT 1 FROM deliveries d JOIN events e ON e.id = d.event_id WHERE e.payment_id = ?", [invoice]))
          .length
      ).toBeGreaterThan(0)
    }
  })
})
