import { expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Duration, Effect, type Predicate, Schedule } from "effect"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { adminOf } from "../lib/admin.ts"
import { confirmations, type Home, localChain, makeHome, pay, rows, serve } from "../lib/daemon.ts"
import { startFaultProxy } from "../lib/faultProxy.ts"
import { makeInbox } from "../lib/inbox.ts"

// Shows what the daemon said where a test fails.
import "../lib/tilld.ts"

const path = "/hook"
const secret = `whsec_${Buffer.alloc(24, 5).toString("base64")}`

interface Health {
  readonly ready: boolean
  readonly reason?: string
}

/** How long /readyz may take to say so. */
const promised = Duration.seconds(5)
/** How often it is asked. */
const often = "100 millis"

/**
 * A shop whose daemon meets a fault. Each payment is announced to its own URL and to an endpoint, so that it is several
 * rows of several tables.
 */
export const openShop = Effect.fn("faults.openShop")(function* (
  envOf: (home: Home) => Readonly<Record<string, string>> = () => ({})
) {
  const chain = yield* localChain("base")
  const provider = yield* startFaultProxy(chain.url)
  const inbox = yield* makeInbox()
  const home = yield* makeHome({
    chains: new Map([["base", chain]]),
    rpcUrls: new Map([["base", [provider.url]]]),
    caFile: inbox.caFile
  })
  const daemon = yield* serve(home, undefined, { TILLD_ADMIN__PORT: "0", ...envOf(home) })
  const admin = yield* adminOf(daemon)
  const hook = { url: `${inbox.url}/endpoint`, events: StatusEventKind.literals, secret }
  expect(yield* daemon.call("POST", "/v1/webhooks", hook)).toMatchObject({ status: 201 })

  let orders = 0
  /** Asks for a payment, which may be refused. */
  const order = Effect.suspend(() => {
    const body = { merchantRef: `fault ${++orders}`, chain: "base", currency: "USDC", amount: "25000000" }
    return daemon.call<PaymentObject>("POST", "/v1/payments", { ...body, webhookUrl: inbox.url + path })
  })
  const create = Effect.map(order, ({ body, status }) => {
    expect(status, JSON.stringify(body)).toBe(201)
    return body
  })
  // A daemon that lacks descriptors closes connections that are idle: one may be in use again by then.
  const readyz = admin("GET", "/readyz").pipe(
    Effect.catchAllDefect(Effect.fail),
    Effect.retry({ schedule: Schedule.spaced(often), times: 20 }),
    Effect.orDie
  )
  /** What is wrong now. */
  const conditions = Effect.map(
    readyz,
    ({ body }): ReadonlyArray<string> => body.conditions.map(({ key }: { readonly key: string }) => key)
  )
  /** Of the store, a worker or the chain; what /readyz says of it, and why. */
  const health = (name: string) =>
    Effect.map(readyz, ({ body, status }) => {
      const all = [...body.workers, ...body.chains.map((one: object) => ({ ...one, name: "chain" }))]
      const found = all.find((one: { readonly name: string }) => one.name === name) as Health | undefined
      expect(found?.ready === false && status === 200).toBe(false)
      return found
    })
  const until = (name: string, isSo: Predicate.Predicate<Health | undefined>) =>
    Effect.repeat(health(name), { until: isSo, schedule: Schedule.spaced(often) })
  /** The same within the promised time, with the reason. */
  const inTime = (name: string, isSo: Predicate.Predicate<Health | undefined>, within: Duration.DurationInput) =>
    until(name, isSo).pipe(
      Effect.zipRight(health(name)),
      Effect.map((found) => found?.reason ?? ""),
      Effect.timeoutFail({
        duration: within,
        onTimeout: () => new Error(`/readyz did not report ${name} within ${Duration.format(Duration.decode(within))}`)
      }),
      Effect.orDie
    )
  return {
    chain,
    provider,
    inbox,
    home,
    daemon,
    order,
    create,
    /** Waits until this is a condition. */
    isCondition: (key: string): Effect.Effect<unknown> =>
      Effect.repeat(conditions, { until: (keys): boolean => keys.includes(key), schedule: Schedule.spaced(often) }),
    /** Pays it, and mines until it is confirmed. */
    pay: (payment: PaymentObject) => Effect.zipRight(pay(chain, payment), chain.mine(confirmations)),
    /** Waits for all events of a payment that was paid, none of which came before. */
    arrives: (payment: PaymentObject) =>
      inbox.take(path, payment, "payment.created", "payment.detecting", "payment.confirmed"),
    /** Within the promised time, /readyz says that this is not ready; returns the reason. */
    isReported: (name: string, within: Duration.DurationInput = promised) =>
      inTime(name, (found) => found?.ready === false, within),
    /** Within the promised time, /readyz says what is wrong, though it may still count as ready. */
    isNamed: (name: string) => inTime(name, (found) => found?.reason !== undefined, promised),
    isReady: (name: string) => until(name, (found) => found?.ready === true),
    /** The payments of the database, which is sound. */
    stored: Effect.zipRight(
      Effect.sync(() => {
        const database = new Database(home.database, { readonly: true })
        expect(database.pragma("integrity_check", { simple: true })).toBe("ok")
        database.close()
      }),
      Effect.map(rows<{ id: string }>(home, "SELECT id FROM payments"), (all) => all.map(({ id }) => id).sort())
    )
  }
})

export const idsOf = (payments: ReadonlyArray<PaymentObject>): ReadonlyArray<string> =>
  payments.map(({ id }) => id).sort()

type Shop = Effect.Effect.Success<ReturnType<typeof openShop>>

/** While there is harm, the store takes no writes, which is said where it must be; afterwards everything goes on by itself. */
export const survives = (
  { arrives, create, daemon, home, isCondition, isReady, isReported, order, pay, stored }: Shop,
  harm: Effect.Effect<void>,
  mend: Effect.Effect<void>,
  words: string
) =>
  Effect.gen(function* () {
    const before = yield* Effect.replicateEffect(create, 5)
    yield* harm
    const refused = yield* Effect.replicateEffect(order, 20, { concurrency: 8 })
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]))
    expect(JSON.stringify(refused[0]?.body)).toContain("STORE_UNAVAILABLE")
    expect(yield* isReported("store")).toContain(words)
    yield* Effect.timeout(isCondition("store_refuses_writes"), promised)
    // Besides the line of the first request that was refused.
    yield* daemon.line((line) => [`"service":"store"`, `"ERROR"`, words].every((text) => line.includes(text)))
    // Paid while nothing can be written.
    yield* Effect.forEach(before, pay, { concurrency: 1 })
    yield* mend
    yield* isReady("store")
    yield* daemon.logged("the store takes writes again")
    const after = yield* Effect.replicateEffect(create, 5)
    yield* Effect.forEach(after, pay, { concurrency: 1 })
    for (const payment of [...before, ...after]) yield* arrives(payment)
    expect(yield* stored).toEqual(idsOf([...before, ...after]))
    expect(yield* daemon.end("SIGTERM"), home.folder).toMatchObject({ code: 0 })
  })
