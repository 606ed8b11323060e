import { expect } from "@effect/vitest"
import { Context, Effect, Layer, type Scope } from "effect"
import type { Permission } from "../../src/Domain/ApiKey.ts"
import { type ChainName, chainNames, type Mode } from "../../src/Domain/Chain.ts"
import { type EventKind, StatusEventKind } from "../../src/Domain/Event.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { type LocalChain, startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import type { Call } from "../lib/api.ts"
import { confirmations, type Daemon, FiveChains, localChain, makeHome, mineAt, pay, serveHere } from "../lib/daemon.ts"
import { type Delivered, type Inbox, makeInbox } from "../lib/inbox.ts"
import { tilldJson } from "../lib/tilld.ts"
import type { Case, Steps } from "./Case.ts"
import { comparedClient } from "./Prism.ts"

/** The outcome of a payment: each of its events, and what the API returned right after them. */
export interface Outcome {
  readonly created: PaymentObject
  readonly events: ReadonlyArray<Delivered>
  readonly read: ReadonlyArray<PaymentObject>
}

/** A shop on a running daemon with five local test chains and a live one. Everything is made once, and shared by all cases. */
export class Shop extends Context.Tag("test/spec/Shop")<
  Shop,
  {
    readonly daemon: Daemon
    readonly inbox: Inbox
    /** Signs for the endpoint at `/all`, which takes every kind of event. */
    readonly endpointSecret: string
    /** Signs for payments' own `webhookUrl`. */
    readonly ownSecret: string
    /** Calls with a test key that may do everything, unless another key is given. */
    readonly ask: Call
    /** Calls without a key. */
    readonly askUnknown: Call
    /** A new key, of the default account unless another is given. */
    readonly newKey: (of: {
      readonly mode?: Mode
      readonly permissions?: ReadonlyArray<Permission>
      readonly account?: string
    }) => Effect.Effect<{ readonly id: string; readonly key: string }>
    /** A key for each permission that may do nothing else. */
    readonly singleKeys: Effect.Effect<Readonly<Record<Permission, string>>>
    /** Runs a command of the operator, which must succeed. */
    readonly run: <A>(...args: ReadonlyArray<string>) => Effect.Effect<A>
    readonly chain: (name: ChainName) => LocalChain
    /** An account with 102 payments, oldest first, in turn on base and on polygon. */
    readonly full: Effect.Effect<{ readonly key: string; readonly payments: ReadonlyArray<PaymentObject> }>
    /** Paid in full on base: with its `webhookUrl` at `/own`. */
    readonly paid: Effect.Effect<Outcome & { readonly txHash: string }>
    /** Ended payments of another daemon, by what was paid. */
    readonly over: Effect.Effect<{
      readonly daemon: Daemon
      readonly ask: Call
      readonly outcomes: Readonly<Record<"unpaid" | "unpaidDefault" | "short" | "token" | "chain", Outcome>>
    }>
  }
>() {
  static readonly layer = Layer.scoped(
    Shop,
    Effect.gen(function* () {
      const chains = yield* FiveChains
      const chain = (name: ChainName) => chains.get(name) ?? expect.fail(`no chain ${name}`)
      const inbox = yield* makeInbox()
      const live = yield* startLocalChain({ chain: "base", chainId: 41_337, tokens: ["USDC"] })
      const liveChains = new Map([["base", live]] as const)
      const daemon = yield* serveHere(yield* makeHome({ chains, liveChains, caFile: inbox.caFile, prices }))
      const ask = yield* askWith(daemon)
      const run = <A>(...args: ReadonlyArray<string>) => tilldJson<A>([...args, "--config", daemon.home.config])

      const { status } = yield* ask("POST", "/v1/webhooks", {
        json: { url: `${inbox.url}/all`, events: StatusEventKind.literals, secret: endpointSecret }
      })
      expect(status).toBe(201)
      const { secret: ownSecret } = yield* run<{ secret: string }>("webhooks", "secret", "--mode", "test")
      // With it comes its gas price.
      yield* Effect.forEach(chainNames, (name) => daemon.logged("first head: reading starts", { chain: name }), {
        concurrency: "unbounded",
        discard: true
      })
      const newKey: Shop["Type"]["newKey"] = ({ account, mode = "test", permissions }) =>
        run(
          ...["keys", "create", "--mode", mode, "--name", "suite"],
          ...(account === undefined ? [] : ["--account", account]),
          ...(permissions === undefined ? [] : ["--permissions", permissions.join(",")])
        )
      const singleKey = (permission: Permission) => Effect.map(newKey({ permissions: [permission] }), ({ key }) => key)
      const singleKeys = Effect.all(
        {
          "payments:read": singleKey("payments:read"),
          "payments:write": singleKey("payments:write"),
          "webhooks:read": singleKey("webhooks:read"),
          "webhooks:write": singleKey("webhooks:write"),
          "quotes:read": singleKey("quotes:read"),
          "exceptions:read": singleKey("exceptions:read"),
          "exceptions:write": singleKey("exceptions:write")
        },
        { concurrency: 2 }
      )
      const full = Effect.gen(function* () {
        const { id: account } = yield* run<{ id: string }>("accounts", "create", "--name", "List", "--shared-wallet")
        const { key } = yield* newKey({ account })
        const payments = yield* Effect.forEach(
          Array.from({ length: 102 }, (_, i) => (i % 2 === 0 ? "base" : "polygon")),
          (name) => create((method, path, sent) => ask(method, path, { ...sent, key }), { chain: name }),
          { concurrency: 1 }
        )
        return { key, payments }
      })
      const shop = { daemon, inbox, ask, chain }
      return {
        ...shop,
        endpointSecret,
        ownSecret,
        askUnknown: yield* comparedClient(daemon.url),
        run,
        newKey,
        singleKeys: yield* Effect.cached(singleKeys),
        full: yield* Effect.cached(full),
        paid: yield* Effect.cached(payInFull(shop)),
        over: yield* Effect.cached(Effect.provide(letRunOut(inbox), yield* Effect.context<Scope.Scope>()))
      }
    })
  ).pipe(Layer.provide(FiveChains.layer))
}

/** A case that is given the shop. */
export const shopCase = (
  covers: ReadonlyArray<string>,
  says: string,
  steps: (shop: Shop["Type"]) => Steps<Shop>
): Case<Shop> => ({ covers, says, test: Effect.flatMap(Shop, (shop) => Effect.gen(() => steps(shop))) })

const endpointSecret = "whsec_a-secret-of-the-merchant"

/** In USD, of every other currency that can be quoted than ETH and USDC. */
const prices = {
  EUR: "1.10",
  GBP: "1.25",
  MXN: "0.05",
  USDT: "1",
  DAI: "1",
  WBTC: "60000",
  MATIC: "0.5"
}

/** Asks with the daemon's own key, unless another one is given. */
const askWith = (daemon: Daemon) =>
  Effect.map(
    comparedClient(daemon.url),
    (call): Call =>
      (method, path, sent) =>
        call(method, path, { key: daemon.key, ...sent })
  )

type Parts = Pick<Shop["Type"], "daemon" | "inbox" | "ask" | "chain">

let orders = 0

/** A request for a unique payment. */
export const order = (fields: Readonly<Record<string, unknown>> = {}) => ({
  merchantRef: `spec ${++orders}`,
  amount: "1000000",
  currency: "USDC",
  chain: "base",
  ...fields
})

/** Creates a payment, which must succeed. */
export const create = (ask: Call, fields: Readonly<Record<string, unknown>> = {}) =>
  Effect.map(ask("POST", "/v1/payments", { json: order(fields) }), ({ body, status, text }) => {
    expect(status, text).toBe(201)
    return body as PaymentObject
  })

const metadata = { cart: ["ünïcödé 💶", 1.5, null, { nested: true }], "": "" }

const payInFull = ({ chain, daemon, inbox, ask }: Parts) =>
  Effect.gen(function* () {
    const base = chain("base")
    const webhookUrl = `${inbox.url}/own`
    const created = yield* create(ask, { webhookUrl, redirectUrl: "https://shop.example/thanks", metadata })
    const whenCreated = yield* daemon.payment(created)
    const txHash = yield* pay(base, created)
    yield* base.mine(confirmations - 1)
    const open = yield* inbox.take("/own", created, "payment.created", "payment.detecting")
    yield* daemon.hasRead(base)
    const whenDetected = yield* daemon.payment(created)
    yield* base.mine()
    const confirmed = yield* inbox.take("/own", created, "payment.confirmed")
    const whenConfirmed = yield* daemon.payment(created)
    return { created, txHash, events: [...open, ...confirmed], read: [whenCreated, whenDetected, whenConfirmed] }
  }).pipe(Effect.orDie)

/** The first second in which the payment is over. */
const firstSecondAfter = ({ expiresAt }: PaymentObject) => Math.floor(Date.parse(expiresAt) / 1000) + 1

/**
 * On a separate daemon, since the clocks of its two chains are set ahead. A payment expires when its own chain and the
 * others that answer have been read past its time: no one waits for an hour.
 */
const letRunOut = (inbox: Inbox) =>
  Effect.gen(function* () {
    const arbitrum = yield* localChain("arbitrum")
    const polygon = yield* localChain("polygon")
    const chains = new Map([
      ["arbitrum", arbitrum],
      ["polygon", polygon]
    ] as const)
    const daemon = yield* serveHere(yield* makeHome({ chains, caFile: inbox.caFile }))
    const ask = yield* askWith(daemon)
    const make = (fields: Readonly<Record<string, unknown>>) =>
      create(ask, { chain: "arbitrum", webhookUrl: `${inbox.url}/over`, ...fields })
    const mineOnBoth = (timestamp: number) =>
      Effect.zipRight(mineAt(polygon, timestamp, confirmations), mineAt(arbitrum, timestamp, confirmations))
    const tell = (created: PaymentObject, ...kinds: ReadonlyArray<EventKind>) =>
      Effect.gen(function* () {
        const events = yield* inbox.take("/over", created, ...kinds)
        const outcome: Outcome = { created, events, read: [yield* daemon.payment(created)] }
        return outcome
      })

    // A chain without open payments is looked at once a minute.
    yield* create(ask, { chain: "polygon", expiresIn: 86_400 })
    const unpaid = yield* make({ expiresIn: 60 })
    const short = yield* make({ expiresIn: 60 })
    const token = yield* make({ expiresIn: 60 })
    const chain = yield* make({ expiresIn: 60 })
    const unpaidDefault = yield* make({})
    yield* pay(arbitrum, { ...short, amount: "999999" })
    yield* pay(arbitrum, { ...token, currency: "USDT" })
    yield* pay(polygon, chain)
    yield* mineOnBoth(firstSecondAfter(unpaid) - 30)
    yield* daemon.hasRead(polygon)
    yield* mineOnBoth(firstSecondAfter(chain))
    const ended = {
      unpaid: yield* tell(unpaid, "payment.created", "payment.expired"),
      short: yield* tell(short, "payment.created", "payment.detecting", "payment.failed"),
      token: yield* tell(token, "payment.created", "payment.failed"),
      chain: yield* tell(chain, "payment.created", "payment.failed")
    }
    yield* mineOnBoth(firstSecondAfter(unpaidDefault) - 1)
    yield* daemon.hasRead(arbitrum)
    const open = yield* daemon.payment(unpaidDefault)
    yield* mineOnBoth(firstSecondAfter(unpaidDefault))
    const last = yield* tell(unpaidDefault, "payment.created", "payment.expired")
    return { daemon, ask, outcomes: { ...ended, unpaidDefault: { ...last, read: [open, ...last.read] } } }
  }).pipe(Effect.orDie)
