import { expect, it } from "@effect/vitest"
import { BigDecimal, Effect, TestClock } from "effect"
import { getAddress, type Hex } from "viem"
import { kinds } from "../../src/Conditions/kinds.ts"
import { lookAtMoney } from "../../src/Conditions/money.ts"
import { keyOf } from "../../src/Conditions/standing.ts"
import type { Prices } from "../../src/Quotes/Prices.ts"
import { Settings } from "../../src/Settings.ts"
import { Reader } from "../../src/Sql.ts"
import { alice, aroundSomeReal, inWorld, next, usdc, watchedPayment, withTokens } from "../Chains/around.ts"
import { ModelChain, token } from "../Chains/ModelChain.ts"
import { insertPayment, pass, paymentById, settings } from "../Chains/world.ts"
import { change, write } from "../lib/rows.ts"

it("each of them answers whether money is missed", () => {
  expect(kinds.money_unaccounted).toMatchObject({ severity: "page", asks: "money" })
  expect(kinds.payments_wait).toMatchObject({ severity: "page", asks: "money" })
  expect(kinds.payments_stopped).toMatchObject({ severity: "ticket", asks: "money" })
})

const day = 24 * 3_600_000
const prices = {
  usd: (symbol: string) => (symbol === "USDC" ? BigDecimal.unsafeFromString("1") : undefined)
} as Prices["Type"]

const live = { ...withTokens, mode: "live" as const }
/** What is wrong by the ledger, of live chains. */
const found = Effect.flatMap(Reader, (reader) => lookAtMoney(settings([live, withTokens]), prices, reader))
const keys = Effect.map(found, (all) => all.map(keyOf))

const addressOf = (n: number) => getAddress(`0x${n.toString(16).padStart(40, "0")}` as Hex)

/** So many findings of the audit. */
const lost = (mode: "live" | "test", currency: string, amount: string, count: number, told = 1) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => addressOf(n + 1)),
    (address) =>
      change("INSERT INTO unaccounted VALUES ('ethereum', ?, ?, ?, ?, 1, ?)", mode, address, currency, amount, told)
  )

it.scoped("money in no row is told of by chain and token, with its first addresses, and dust is not", () =>
  inWorld(
    Effect.gen(function* () {
      yield* lost("live", "USDC", "1250000", 5)
      yield* lost("live", "ETH", "1", 1)
      yield* lost("live", "USDT", "1", 1, 0)
      yield* lost("test", "USDC", "1000000", 1)
      const [first, ...others] = yield* found
      expect(first).toMatchObject({ kind: "money_unaccounted", subject: "ethereum.live ETH", severity: "page" })
      expect(first?.summary).toContain("0.000000000000000001 ETH on ethereum.live")
      expect(others.map((one) => `${one.severity} ${keyOf(one)}`)).toEqual([
        "page money_unaccounted ethereum.live USDC",
        "note money_unaccounted ethereum.test USDC"
      ])
      const names = [1, 2, 3].map(addressOf).join(", ")
      expect(others[0]?.summary).toBe(
        `6.250000 USDC on ethereum.live came to addresses of tilld and is in no row: ${names} and 2 more`
      )
      expect(others[0]?.remedy).toContain("tilld claim HASH --chain ethereum --mode live")
      yield* change("DELETE FROM unaccounted")
      yield* lost("live", "USDC", "50000", 1)
      expect(yield* keys).toEqual([])
    })
  )
)

it.scoped("a payment that is paid and deep waits while the second provider answers 429, and no longer", () => {
  const first = new ModelChain(10)
  const other = first.twin()
  return Effect.gen(function* () {
    const { chains } = yield* Settings
    const waiting = Effect.flatMap(Reader, (reader) => lookAtMoney(settings(chains), prices, reader))
    const { id } = yield* watchedPayment(alice, { currency: "USDC" })
    other.failure = "rate_limited"
    yield* next(first, token(usdc, alice, 100n))
    yield* pass("3 minutes")
    // It lacks confirmations.
    expect(yield* waiting).toEqual([])
    yield* next(first)
    yield* next(first)
    yield* pass("1 minute")
    expect(yield* waiting).toEqual([])
    yield* pass("2 minutes")
    expect((yield* paymentById(id))?.status).toBe("detecting")
    const [one] = yield* waiting
    expect(one).toMatchObject({ kind: "payments_wait", subject: "ethereum.test", severity: "note" })
    expect(one?.summary).toBe(
      `paid payments that wait on ethereum.test, with all confirmations: 1, the oldest, ${id}, for 3 minutes`
    )
    // Its tag is not known yet.
    const policies = [{ aboveUsd: "0", require: "finalized" }] as const
    const strict = settings(chains.map((chain) => ({ ...chain, policies })))
    expect(yield* Effect.flatMap(Reader, (reader) => lookAtMoney(strict, prices, reader))).toEqual([])
    other.failure = undefined
    yield* pass("2 minutes")
    expect((yield* paymentById(id))?.status).toBe("confirmed")
    expect(yield* waiting).toEqual([])
  }).pipe(aroundSomeReal([first, other]))
})

/** Payments that were confirmed at these times. */
const confirmed = (times: ReadonlyArray<number>) =>
  Effect.forEach(times, (at, n) =>
    Effect.gen(function* () {
      const { id } = yield* write(insertPayment({ address: addressOf(n + 1), chain: "ethereum", mode: "live" }))
      yield* change("UPDATE payments SET status = 'confirmed', confirmed_at = ?, ended_at = ? WHERE id = ?", at, at, id)
    })
  )
const daily = (count: number, from = 0) => Array.from({ length: count }, (_, n) => (from + n) * day)

for (const [title, times, silence, expected] of [
  ["three times the longest pause", daily(28), 3 * day, []],
  ["more than that", daily(28), 3 * day + 3, ["payments_stopped ethereum.live"]],
  ["more, and there was a longer pause before", [0, ...daily(26, 2)], 3 * day + 3, []],
  ["more, and there were few payments", daily(19), 3 * day + 3, []],
  ["more, and two weeks are not over", Array.from({ length: 40 }, (_, n) => (n * day) / 4), 3 * day, []],
  ["some hours after very many", Array.from({ length: 400 }, (_, n) => (n * day) / 24), day / 4 - 1, []],
  [
    "more hours after very many",
    Array.from({ length: 400 }, (_, n) => (n * day) / 24),
    day / 4,
    ["payments_stopped ethereum.live"]
  ]
] as const) {
  it.scoped(`a chain without a confirmed payment for ${title}`, () =>
    inWorld(
      Effect.gen(function* () {
        yield* confirmed(times)
        yield* TestClock.setTime((times.at(-1) ?? 0) + silence)
        expect(yield* keys).toEqual(expected)
      })
    )
  )
}
