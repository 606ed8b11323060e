import assert from "node:assert/strict"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schedule, type Scope } from "effect"
import type { Address } from "viem"
import { HDKey } from "viem/accounts"
import { digested, type Plan, type Unsigned } from "../../src/Collect/Plan.ts"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import { signPlan } from "../../src/Collect/sign.ts"
import type { ChainName } from "../../src/Domain/Chain.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { sponsorAddress } from "../../src/Settings/hdWallet.ts"
import { localChain, makeHome, pay, serveHere } from "../lib/daemon.ts"
import { root, tilld, tilldJson } from "../lib/tilld.ts"
import { ether, holdsExactly } from "./collecting.ts"

export const network = ["--chain", "ethereum", "--mode", "test"]

/** Asks until the answer fits. */
export const eventually = <A, E, R>(ask: Effect.Effect<A, E, R>, fits: (answer: A) => boolean) =>
  Effect.retry(
    Effect.filterOrFail(ask, fits, () => "not yet" as const),
    {
      schedule: Schedule.spaced("50 millis"),
      while: (error) => error === "not yet"
    }
  )

/** Runs a command again until what it is about has its confirmations. */
export const onceDeep = (args: ReadonlyArray<string>) =>
  eventually(tilld(args), ({ stderr }) => !stderr.includes("decide once it has them"))

/** Has a command killed before it does something to a file for the n-th time. */
export const killedAt = (moment: number, on = "fsyncSync") => ({
  ...{ KILL_ON: on, KILL_AT: `${moment}`, NODE_OPTIONS: `--import=${join(root, "test/lib/killAt.mjs")}` }
})

export interface ShopOptions {
  /** Starts what everything asks in place of the chain. */
  readonly front?: (url: string) => Effect.Effect<{ readonly url: string }, never, Scope.Scope>
  /** Starts a second provider. */
  readonly second?: ShopOptions["front"]
  /** Another chain beside ethereum. */
  readonly other?: ChainName
}

/** A shop with a daemon, whose chain mines four times a second, and the steps of a collection by their commands. */
export const openShop = Effect.fnUntraced(function* ({
  front = (url) => Effect.succeed({ url }),
  other,
  second
}: ShopOptions = {}) {
  const chain = yield* localChain("ethereum")
  const others = other === undefined ? [] : [[other, yield* localChain(other)] as const]
  const { url } = yield* front(chain.url)
  const urls = second === undefined ? [url] : [url, (yield* second(chain.url)).url]
  const home = yield* makeHome({
    chains: new Map([["ethereum", chain], ...others]),
    rpcUrls: new Map([["ethereum", urls]]),
    prices: { USDT: "1", DAI: "1", EUR: "1.10" }
  })
  const daemon = yield* serveHere(home)
  // Without an open payment the chain is read once a minute.
  yield* daemon.create({ chain: "ethereum", currency: "DAI", amount: "1000" })
  const sponsor = sponsorAddress(HDKey.fromMasterSeed(home.seed()).derive("m/44'/60'/0'").publicExtendedKey) as Address
  yield* chain.payNative({ to: sponsor, amount: ether })
  yield* chain.mine()
  for (const one of [chain, ...others.map(([, other]) => other)]) {
    yield* Effect.forkScoped(Effect.forever(Effect.delay(one.mine(), "250 millis")))
  }
  const config = ["--config", home.config]
  const until = (payment: PaymentObject, status: string) =>
    eventually(daemon.payment(payment), (found) => found.status === status)
  const paid = Effect.fnUntraced(function* (currency: string, amount: bigint) {
    const payment = yield* daemon.create({ chain: "ethereum", currency, amount: `${amount}` })
    yield* pay(chain, payment)
    return yield* until(payment, "confirmed")
  })
  const exceptions = Effect.map(
    daemon.call<{ readonly data: ReadonlyArray<Exception> }>("GET", "/v1/exceptions?limit=100"),
    ({ body }) => body.data
  )
  const file = (name: string) => join(home.folder, name)
  const planning = (name: string, ...args: ReadonlyArray<string>) => [
    ...["sweep", "plan", ...network, ...args, "-o", file(name), ...config]
  ]
  const plan = Effect.fnUntraced(function* (name: string, ...args: ReadonlyArray<string>) {
    const made = yield* onceDeep([...planning(name, ...args), "--json"])
    if (made.code !== 0) return yield* Effect.dieMessage(made.stderr)
    return JSON.parse(made.stdout) as { readonly moves: number; readonly leftOut: Plan["leftOut"] }
  })
  const planIn = (name: string) => JSON.parse(readFileSync(file(name), "utf8")) as Plan
  const sign = Effect.fnUntraced(function* (name: string) {
    const signed = yield* signPlan(planIn(name), home.seed(), { allow: [], feeCeiling: 10n ** 15n })
    writeFileSync(file(`${name}.signed`), JSON.stringify(signed))
  })
  /** Signs a plan with other moves than those of the one that was made. */
  const signOther = (name: string, of: string, edit: (move: Plan["moves"][number]) => Plan["moves"][number]) => {
    const { digest: _, words: __, ...made } = planIn(of)
    const other: Unsigned = { ...made, moves: made.moves.map(edit) }
    writeFileSync(file(name), JSON.stringify(digested(other)))
    return sign(name)
  }
  const broadcasting = (name: string) => ["sweep", "broadcast", file(`${name}.signed`), ...config]
  const broadcast = (name: string, env = {}) => tilld([...broadcasting(name), "--json"], { env })
  /** Sends to the end, where everything adds up. */
  const sent = Effect.fnUntraced(function* (name: string) {
    const result = yield* tilldJson<SweepResult>(broadcasting(name))
    assert.deepEqual(result.differences, [])
    assert.ok(holdsExactly(result))
    return result
  })
  return {
    ...{ chain, other: others[0]?.[1], config, daemon, exceptions, file, home, paid, sponsor, until },
    ...{ broadcast, broadcasting, plan, planIn, planning, sent, sign, signOther }
  }
})

interface Exception {
  readonly id: string
  readonly kind: string
  readonly currency: string
  readonly amount: string
  readonly address: string
  readonly resolution?: string
  readonly resolutionTxHash?: string
}
