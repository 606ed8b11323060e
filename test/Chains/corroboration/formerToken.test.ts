import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { ChainSettings } from "../../../src/Settings.ts"
import { rows } from "../../lib/rows.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, lookAlike, next, usdc, watchedPayment, withTokens } from "../around.ts"
import { ModelChain, type ModelTransaction, modelRpc, token } from "../ModelChain.ts"
import { pass, pay, paymentById, realSettlement, watch, world } from "../world.ts"

// What a payment is worth after the configuration has changed: the watchers start again, with other tokens.

type Tokens = ChainSettings["tokens"]
const { tokens } = withTokens
const replaced: Tokens = [{ symbol: "USDC", address: lookAlike, decimals: 18 }]

/** The lives of a daemon on one database, each with tokens of its own. The chain has two honest providers. */
const lives = Effect.map(temporaryDatabase, (path) => {
  const first = new ModelChain(10)
  const chains = { "model:0": first, "model:1": first.twin() }
  const rpcUrls = Object.keys(chains).map((url) => Redacted.make(url))
  const life = (configured: Tokens) =>
    world(path, [{ ...withTokens, rpcUrls, tokens: configured }], modelRpc(chains), realSettlement)
  return {
    mine: (...transactions: ReadonlyArray<ModelTransaction>) => next(first, ...transactions),
    /** The newest block's transactions are in the second one of a new branch. */
    reorg: Effect.suspend(() => {
      const { transactions } = first.blocks.at(-1) ?? { transactions: [] }
      first.rollback(1)
      first.mine()
      return next(first, ...transactions)
    }),
    /** Buries it under confirmations. With nothing open, the chain is read once a minute. */
    deepen: Effect.suspend(() => {
      first.mineMany(12)
      return pass("5 minutes")
    }),
    during:
      (configured: Tokens) =>
      <A, E, R>(story: Effect.Effect<A, E, R>) =>
        Effect.scoped(Effect.provide(story, life(configured)))
  }
})

const receipts = rows<{ currency: string; amount: string; corroborated: number; refuted: number }>(
  "SELECT currency, amount, corroborated, refuted FROM receipts ORDER BY block_number, currency"
)

for (const [title, configured] of [
  ["is configured no longer", []],
  ["has another contract now", replaced]
] as const) {
  it.scoped(`a payment that was seen is confirmed by its own contract when its token ${title}`, () =>
    Effect.gen(function* () {
      const { deepen, during, mine } = yield* lives
      const { id } = yield* Effect.gen(function* () {
        const payment = yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
        yield* mine(token(usdc, alice, 5n))
        expect((yield* paymentById(payment.id))?.status).toBe("detecting")
        return payment
      }).pipe(during(tokens))
      yield* Effect.gen(function* () {
        yield* watch
        yield* deepen
        expect(yield* receipts).toEqual([{ currency: "USDC", amount: "5", corroborated: 1, refuted: 0 }])
        expect(yield* paymentById(id)).toMatchObject({ status: "confirmed", amountReceived: 5n })
      }).pipe(during(configured))
    })
  )
}

it.scoped("money of a payment counts by the contract that it was created with, and by no other", () =>
  Effect.gen(function* () {
    const { deepen, during, mine } = yield* lives
    const { id } = yield* watchedPayment(alice, { currency: "USDC", amount: 5n }).pipe(during(tokens))
    const bob = "0x0000000000000000000000000000000000000B0b"
    yield* Effect.gen(function* () {
      const later = yield* pay(bob, { currency: "USDC", amount: 5n })
      yield* watch
      expect(later.token).toMatchObject({ decimals: 18 })
      yield* mine(token(usdc, alice, 5n), token(lookAlike, alice, 6n), token(usdc, bob, 7n), token(lookAlike, bob, 5n))
      yield* deepen
      expect((yield* receipts).map(({ amount, currency }) => [amount, currency])).toEqual([
        ["7", usdc],
        ["6", lookAlike],
        ["5", "USDC"],
        ["5", "USDC"]
      ])
      for (const payment of [id, later.id]) {
        expect(yield* paymentById(payment)).toMatchObject({ status: "confirmed", amountReceived: 5n })
      }
      const exceptions = yield* rows("SELECT payment_id, kind, currency, amount FROM exceptions ORDER BY amount")
      expect(exceptions).toEqual([
        { payment_id: id, kind: "wrong_token", currency: lookAlike, amount: "6" },
        { payment_id: later.id, kind: "wrong_token", currency: usdc, amount: "7" }
      ])
    }).pipe(during(replaced))
  })
)

it.scoped(
  "money that comes while its token is not configured is found at once, and nothing more when it is again",
  () =>
    Effect.gen(function* () {
      const { deepen, during, mine } = yield* lives
      const { id } = yield* Effect.gen(function* () {
        const payment = yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
        yield* mine(token(usdc, alice, 5n))
        yield* deepen
        expect((yield* paymentById(payment.id))?.status).toBe("confirmed")
        return payment
      }).pipe(during(tokens))
      const exceptions = rows("SELECT payment_id, kind, currency, amount FROM exceptions")
      const late = [{ payment_id: id, kind: "overpaid", currency: "USDC", amount: "3" }]
      yield* Effect.gen(function* () {
        yield* watch
        yield* mine(token(usdc, alice, 3n))
        yield* deepen
        expect(yield* exceptions).toEqual(late)
      }).pipe(during([]))
      yield* Effect.gen(function* () {
        yield* watch
        yield* deepen
        expect(yield* exceptions).toEqual(late)
        expect(yield* rows("SELECT contract FROM tokens")).toHaveLength(1)
      }).pipe(during(tokens))
    })
)

for (const [title, configured] of [
  ["is configured no longer", []],
  ["has another contract now", replaced]
] as const) {
  it.scoped(`what a reorg mines again keeps the name of its token, which ${title}`, () =>
    Effect.gen(function* () {
      const { deepen, during, mine, reorg } = yield* lives
      yield* Effect.gen(function* () {
        yield* watchedPayment(alice, { currency: "DAI", amount: 5n })
        yield* mine(token(usdc, alice, 5n))
      }).pipe(during(tokens))
      yield* Effect.gen(function* () {
        yield* watch
        yield* reorg
        yield* deepen
        const all = rows("SELECT currency, canonical, corroborated FROM receipts ORDER BY block_number")
        expect(yield* all).toEqual([
          { currency: "USDC", canonical: 0, corroborated: 0 },
          { currency: "USDC", canonical: 1, corroborated: 1 }
        ])
        expect(yield* rows("SELECT kind, currency, outcome FROM exceptions")).toEqual([
          { kind: "wrong_token", currency: "USDC", outcome: null }
        ])
      }).pipe(during(configured))
    })
  )
}
