import { expect } from "@effect/vitest"
import { Array as Arr, Context, Effect, Layer, Schedule } from "effect"
import type { ChainHealth } from "../../src/Chains.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { adminOf } from "../lib/admin.ts"
import { confirmations, type Daemon, localChain, makeHome, pay, rows, serveHere, story } from "../lib/daemon.ts"
import { faultNames, type PassingFault, startFaultProxy } from "../lib/faultProxy.ts"
import { type Inbox, makeInbox } from "../lib/inbox.ts"
import { liveSuite, liveTest } from "../lib/scopedTest.ts"

/** One of the two fails for as long as a test takes: nothing waits for it. Five daemons at once look less often. */
const hasty = {
  TILLD_PAYMENTS__SOLE_PROVIDER_PATIENCE: "0 seconds",
  TILLD_CHAINS__BASE__TEST__POLL_INTERVAL: "250 millis",
  TILLD_ADMIN__PORT: "0"
}

const path = "/hook"
const order = { chain: "base", currency: "USDC", amount: "25000000" } as const

/** One chain for the suite. Each test has a daemon and two providers of its own. */
class Ground extends Context.Tag("test/Ground")<Ground, { readonly chain: LocalChain; readonly inbox: Inbox }>() {
  static readonly layer = Layer.scoped(Ground, Effect.all({ chain: localChain("base"), inbox: makeInbox() }))
}

/** A daemon that has begun to read, from the first of its two providers. */
const shop = Effect.gen(function* () {
  const { chain, inbox } = yield* Ground
  const [first, second] = [yield* startFaultProxy(chain.url), yield* startFaultProxy(chain.url)]
  const home = yield* makeHome({
    chains: new Map([["base", chain]]),
    rpcUrls: new Map([["base", [first.url, second.url]]]),
    caFile: inbox.caFile
  })
  const daemon = yield* serveHere(home, undefined, hasty)
  yield* daemon.create(order)
  yield* chain.mine()
  yield* daemon.hasRead(chain)
  return {
    chain,
    inbox,
    home,
    daemon,
    first,
    second,
    create: () => daemon.create({ ...order, webhookUrl: inbox.url + path })
  }
})

type Shop = Effect.Effect.Success<typeof shop>

/** What health says of the first provider, as soon as `holds`. */
const firstProvider = (daemon: Daemon, holds: (first: ChainHealth["providers"][number]) => boolean) =>
  Effect.flatMap(adminOf(daemon), (admin) =>
    Effect.delay(admin("GET", "/readyz"), "20 millis").pipe(
      Effect.map(({ body }) => (body.chains as ReadonlyArray<ChainHealth>)[0]?.providers[0] ?? expect.fail("none")),
      Effect.repeat({ until: holds })
    )
  )

/** Why health reports the provider in cooldown; undefined for faults that spoil a response, and not the provider. */
const reasons: Readonly<Record<PassingFault, RegExp | undefined>> = {
  delay: undefined,
  hang: /timeout/,
  drop: /unreachable/,
  tooManyRequests: /rate_limited/,
  truncatedJson: /garbage/,
  rangeLimit: undefined,
  logLimit: undefined,
  staleHead: /behind/,
  balancer: undefined,
  emptyLogs: undefined,
  partialLogs: undefined,
  // The first block's hash is wrong too, where that is what it is looked at for: then it is another chain's.
  wrongHash: /inconsistent|missing|serves another chain/,
  wrongChain: undefined,
  prunedState: undefined
}

/** What shows only when another provider is asked, which happens now and then. */
const slow: ReadonlyArray<PassingFault> = ["staleHead", "emptyLogs", "partialLogs"]
const quick = faultNames.filter((name) => !slow.includes(name))

liveSuite(Ground.layer, "while the first of two providers", (test) => {
  /** A payment that is made and paid under the fault is announced and confirmed once, with its whole amount. */
  const isConfirmedOnce = (fault: PassingFault, { chain, create, daemon, first, home, inbox }: Shop) =>
    Effect.gen(function* () {
      // The cooldown may last a few seconds only: health is checked from the start.
      const put = yield* Effect.forkScoped(firstProvider(daemon, (provider) => !provider.healthy))
      yield* first.set(fault)
      const payment = yield* create()
      const hash = yield* pay(chain, payment)
      yield* chain.mine()
      const reason = reasons[fault]
      // One block a second.
      yield* Effect.forkScoped(Effect.repeat(Effect.delay(chain.mine(), "1 second"), Schedule.forever))
      if (reason !== undefined) {
        const aside = yield* put
        expect(aside.reason).toMatch(reason)
        expect(aside.host).toBe(new URL(first.url).host)
      }
      yield* chain.mine(confirmations - 1)
      // A provider with other blocks denies what it is asked about before its cooldown: then nothing is decided without it.
      if (fault === "wrongHash") yield* first.set()
      const [, , confirmed] = yield* inbox.take(
        path,
        payment,
        "payment.created",
        "payment.detecting",
        "payment.confirmed"
      )
      expect(confirmed?.event.data).toMatchObject({ txHash: hash, amountReceived: order.amount })

      yield* first.set()
      const next = yield* create()
      yield* pay(chain, next)
      yield* inbox.take(path, next, "payment.created", "payment.detecting", "payment.confirmed")
      expect(yield* story(home, payment)).toEqual({
        statuses: ["detecting", "confirmed"],
        events: ["payment.created", "payment.detecting", "payment.confirmed"]
      })
      const receipts = yield* rows(home, "SELECT amount FROM receipts WHERE canonical = 1 ORDER BY block_number")
      expect(receipts).toEqual([{ amount: order.amount }, { amount: order.amount }])
      yield* firstProvider(daemon, (provider) => provider.healthy)
    })

  for (const faults of Arr.chunksOf([...slow, ...quick], 5)) {
    test(`does one of these: ${faults.join(", ")}, payments are confirmed once`, function* () {
      // One after another, while no block comes by itself: a daemon that reads two at once never says that it read the first.
      const shops = yield* Effect.forEach(faults, (fault) => Effect.map(shop, (opened) => [fault, opened] as const))
      yield* Effect.forEach(shops, ([fault, opened]) => isConfirmedOnce(fault, opened), {
        concurrency: "unbounded",
        discard: true
      })
    })
  }

  test("serves another chain, nothing is read from it, and health says so", function* () {
    const { chain, daemon, first, home, inbox } = yield* shop
    yield* daemon.end("SIGTERM")
    yield* first.set("wrongChain")
    const again = yield* serveHere(home, daemon.key, hasty)
    const aside = yield* firstProvider(again, (provider) => !provider.healthy)
    expect(aside.reason).toMatch(/serves chain 1337/)
    const payment = yield* again.create({ ...order, webhookUrl: inbox.url + path })
    yield* pay(chain, payment)
    yield* chain.mine(confirmations)
    yield* inbox.take(path, payment, "payment.created", "payment.detecting", "payment.confirmed")
    expect(first.count("eth_chainId")).toBeGreaterThan(0)
  })
})

liveTest("payments that were made and paid before any provider of a new chain answered are confirmed", function* () {
  const chain = yield* localChain("base")
  const provider = yield* startFaultProxy(chain.url)
  yield* provider.set("drop")
  const home = yield* makeHome({
    chains: new Map([["base", chain]]),
    rpcUrls: new Map([["base", [provider.url]]])
  })
  const daemon = yield* serveHere(home)
  const payments = yield* Effect.forEach(
    [
      { currency: "USDC", amount: "25000000" },
      { currency: "ETH", amount: "10000000000000000" }
    ],
    (order) => daemon.create({ ...order, chain: "base" }),
    { concurrency: 1 }
  )
  for (const payment of payments) yield* pay(chain, payment)
  yield* chain.mine(20 * confirmations)
  yield* provider.set()
  yield* daemon.hasRead(chain)
  for (const payment of payments) {
    const known = yield* daemon
      .payment(payment)
      .pipe(Effect.delay("20 millis"), Effect.repeat({ until: ({ status }) => status === "confirmed" }))
    expect(known.amountReceived).toBe(payment.amount)
  }
})
