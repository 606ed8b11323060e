import { expect } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { request } from "undici"
import { permissions } from "../../src/Domain/ApiKey.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { confirmations, type Daemon, localChain, makeHome, pay, serveHere } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { tilld } from "../lib/tilld.ts"

/** A daemon that has confirmed one payment and waits for another. */
class Shop extends Context.Tag("test/Shop")<
  Shop,
  { readonly daemon: Daemon; readonly paid: PaymentObject; readonly open: PaymentObject; readonly hookUrl: string }
>() {
  static readonly layer = Layer.scoped(
    Shop,
    Effect.gen(function* () {
      const chain = yield* localChain("base")
      const inbox = yield* makeInbox()
      const hookUrl = `${inbox.url}/hook`
      const daemon = yield* serveHere(yield* makeHome({ chains: new Map([["base", chain]]), caFile: inbox.caFile }))
      const order = { chain: "base", currency: "USDC", amount: "25000000" } as const
      const payment = yield* daemon.create({ ...order, webhookUrl: hookUrl })
      yield* pay(chain, payment)
      yield* chain.mine(confirmations)
      yield* inbox.take("/hook", payment, "payment.created", "payment.detecting", "payment.confirmed")
      return { daemon, hookUrl, paid: yield* daemon.payment(payment), open: yield* daemon.create(order) }
    })
  )
}

/** Runs a command with `--json` against the shop's daemon: nothing but one JSON value may come of it. */
const json = <A>(...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { daemon } = yield* Shop
    const { code, stderr, stdout } = yield* tilld([...args, "--json", "--config", daemon.home.config])
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    const value = JSON.parse(stdout) as A
    expect(stdout).toBe(`${JSON.stringify(value)}\n`)
    return value
  })

const text = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(Shop, ({ daemon }) => tilld([...args, "--config", daemon.home.config]))

interface Key {
  readonly id: string
  readonly key: string
}

const listWith = (key: string) =>
  Effect.flatMap(Shop, ({ daemon }) =>
    Effect.promise(async () => {
      const { body, headers, statusCode } = await request(`${daemon.url}/v1/payments`, {
        headers: { "x-api-key": key }
      })
      const [type, limit] = [headers["content-type"], headers["x-ratelimit-limit"]]
      return { status: statusCode, body: (await body.json()) as unknown, type, limit }
    })
  )

liveSuite(Shop.layer, "beside a running daemon", (test) => {
  test("a key works, is rolled, changed and revoked when the command returns", function* () {
    const made = yield* json<Key>("keys", "create", "--mode", "test", "--name", "till", "--per-minute", "7")
    expect(made).toMatchObject({ mode: "test", account: "default", permissions })
    expect(yield* listWith(made.key)).toMatchObject({ status: 200, limit: "7" })
    const rolled = yield* json<Key>("keys", "roll", made.id, "--overlap", "0s")
    const unauthorized = { error: { code: "UNAUTHORIZED", message: expect.any(String) } }
    expect(yield* listWith(made.key)).toMatchObject({ status: 401, body: unauthorized })
    expect(yield* listWith(rolled.key)).toMatchObject({ status: 200, limit: "7" })
    const used = { id: rolled.id, lastUsedAt: expect.any(String) }
    expect(yield* json("keys", "list")).toContainEqual(expect.objectContaining(used))
    yield* json("keys", "change", rolled.id, "--ip", "192.0.2.0/24")
    expect(yield* listWith(rolled.key)).toMatchObject({ status: 403, body: { error: { code: "FORBIDDEN" } } })
    yield* json("keys", "revoke", rolled.id)
    expect((yield* listWith(rolled.key)).status).toBe(401)
  })

  test("payments list shows what the API lists, with the token's decimals, also where only the socket is named", function* () {
    const { daemon, open, paid } = yield* Shop
    const all = yield* json<ReadonlyArray<PaymentObject>>("payments", "list")
    expect(all.map(({ id, status }) => ({ id, status }))).toEqual([
      { id: open.id, status: "pending" },
      { id: paid.id, status: "confirmed" }
    ])
    const confirmed = yield* json<ReadonlyArray<PaymentObject>>("payments", "list", "--status", "confirmed")
    // What came and what goes back is shown with one payment alone.
    expect(confirmed).toHaveLength(1)
    expect([{ ...paid, account: "default", mode: "test" }]).toMatchObject(confirmed)
    expect((yield* text("payments", "list", "--limit", "1")).stdout).not.toContain(paid.id)

    const { stdout } = yield* text("payments", "list")
    const [headings = "", ...rows] = stdout.split("\n")
    expect(headings).toMatch(/^ID +MODE +STATUS +REASON +CHAIN +AMOUNT +RECEIVED +CREATED +REFERENCE$/)
    const amountsOf = (id: string) => rows.find((row) => row.startsWith(id))?.match(/\S+ USDC/g)
    expect(amountsOf(open.id)).toEqual(["25.000000 USDC"])
    expect(amountsOf(paid.id)).toEqual(["25.000000 USDC", "25.000000 USDC"])
    const bySocket = yield* tilld(["payments", "list"], { env: { TILLD_SOCKET: `${daemon.home.database}.sock` } })
    expect(bySocket).toMatchObject({ code: 0, stdout, stderr: "" })
  })

  test("payments show prints a payment's whole history", function* () {
    const { hookUrl, paid } = yield* Shop
    const story = yield* json<{ readonly payment: object }>("payments", "show", paid.id)
    expect({ ...paid, account: "default", mode: "test" }).toMatchObject(story.payment)
    expect(story).toMatchObject({
      receipts: [{ chain: "base", currency: "USDC", amount: "25000000", txHash: paid.txHash, canonical: true }],
      transitions: [
        { from: "pending", to: "detecting" },
        { from: "detecting", to: "confirmed" }
      ],
      events: [{ kind: "payment.created" }, { kind: "payment.detecting" }, { kind: "payment.confirmed" }],
      deliveries: [1, 2, 3].map(() => ({ url: hookUrl, status: "delivered", attempts: [{ number: 1, status: 204 }] }))
    })
    const { stdout } = yield* text("payments", "show", paid.id)
    expect(stdout).toContain(paid.txHash)
    expect(stdout).toContain("detecting -> confirmed")
    expect(stdout).toContain("amountReceived: 25.000000 USDC\n")
  })
})
