import { readFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { makeClient } from "../lib/api.ts"
import { confirmations, localChain, makeHome, pay, serve } from "../lib/daemon.ts"
import { startFaultProxy } from "../lib/faultProxy.ts"
import { makeInbox } from "../lib/inbox.ts"
import { entered, linkBySocket, visitorOf } from "../lib/portal.ts"
import { liveTest } from "../lib/scopedTest.ts"

const order = { chain: "base", currency: "USDC", amount: "25000000" } as const
const providersKey = "k3y0fTheProvider"
const secret = `whsec_${Buffer.alloc(24, 5).toString("base64")}`
const receiversToken = "t0k3nOfTheReceiver"
const password = "correct horse battery staple"
const me = "/portal/a/default/test/me"

liveTest(
  "in a day of payments, failures, mistakes and visits to the portal the log has no secret, at no level",
  function* () {
    const chain = yield* localChain("base")
    const broken = yield* startFaultProxy(chain.url)
    const inbox = yield* makeInbox({ behaviour: ({ path }) => (path.startsWith("/down") ? 500 : 204) })
    const home = yield* makeHome({
      chains: new Map([["base", chain]]),
      rpcUrls: new Map([["base", [`${chain.url}/?key=${providersKey}`, `${broken.url}/${providersKey}`]]]),
      caFile: inbox.caFile
    })
    const daemon = yield* serve(home, undefined, {
      TILLD_LOG__LEVEL: "trace",
      TILLD_PAYMENTS__SOLE_PROVIDER_PATIENCE: "0 seconds",
      TILLD_ADMIN__PORT: "0"
    })
    yield* daemon.hasRead(chain)
    yield* broken.set("drop")

    // A shop works, and its receiver fails.
    const hook = { url: `${inbox.url}/down/${receiversToken}`, events: ["payment.created"], secret }
    expect((yield* daemon.call("POST", "/v1/webhooks", hook)).status).toBe(201)
    const payment = yield* daemon.create({ ...order, webhookUrl: `${inbox.url}/own?token=${receiversToken}` })
    yield* daemon.hasRead(chain)
    yield* pay(chain, payment)
    yield* chain.mine(confirmations)
    yield* daemon.logged("payment confirmed", { payment: payment.id })
    yield* daemon.logged("a webhook attempt failed: it is retried")

    // It makes mistakes: secrets where they do not belong.
    const client = yield* makeClient(daemon.url)
    const { key } = daemon
    for (const wrong of [`${key}x`, secret, password]) yield* client("GET", "/v1/payments", { key: wrong })
    yield* client("GET", `/v1/payments/${key}?secret=${secret}`, { key })
    yield* client("POST", `/v1/webhooks?key=${key}`, {
      key,
      json: { url: secret, events: [key], secret: "whsec_short" }
    })
    yield* client("POST", "/v1/payments", { key, json: { ...order, merchantRef: secret, metadata: { password } } })
    yield* client("POST", "/v1/payments", { key, body: `{"key":"${key}` })

    // Its customer opens the checkout, and its owner the portal.
    const { checkoutUrl = "" } = (yield* daemon.payment(payment)) as PaymentObject & { readonly checkoutUrl?: string }
    const token = new URL(checkoutUrl).pathname.split("/").at(-1) ?? ""
    const visitor = visitorOf(daemon.url)
    expect((yield* visitor.get(`/pay/${token}`)).status).toBe(200)
    const link = yield* linkBySocket(home)
    yield* entered(visitor, link)
    const session = visitor.secret() ?? ""
    expect((yield* visitor.post(`${me}/password`, { name: "ada", password })).status).toBe(303)
    for (const page of ["payments", "webhooks", "keys", "deliveries", "requests", "settings"]) {
      yield* visitor.get(`/portal/a/default/test/${page}`)
    }
    const other = visitorOf(daemon.url)
    yield* other.post("/portal/sign-in", { name: "ada", password: `${password}!`, next: me })
    yield* other.post("/portal/sign-in", { name: "ada", password, next: me })

    yield* daemon.end("SIGTERM")
    const log = daemon.lines().join("\n")
    for (const said of ["tilld starts", "tilld is stopping", "an API key was refused", "payment detecting"]) {
      expect(log).toContain(said)
    }
    const [, xpub = ""] = /test = "(xpub\w+)"/.exec(readFileSync(home.config, "utf8")) ?? []
    const master = readFileSync(`${home.folder}/master.key`, "utf8")
    const secrets = { key, secret, providersKey, receiversToken, password, xpub, master, token, link, session }
    for (const [name, text] of Object.entries({ ...secrets, other: other.secret() ?? "" })) {
      expect(text.length, name).toBeGreaterThan(8)
      expect(log.includes(text) || log.includes(encodeURIComponent(text)), `${name} is in the log`).toBe(false)
    }
    // Nor anything else that looks like one.
    expect(log).not.toMatch(/svc_(?:live|test)_\w{5}|whsec_\w|xpub\w{5}/)
    for (const line of daemon.lines()) expect(() => JSON.parse(line)).not.toThrow()
  }
)
