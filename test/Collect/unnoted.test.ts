/** Refunds that are on the chain and not in the database: no other plan may send them. */
import { expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import { pay, rows } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"
import { ether, someone } from "./collecting.ts"
import { eventually, killedAt, openShop } from "./shop.ts"

const late = ether / 50n

/** A shop with coin that came to a paid address, whose refund was killed once it was in a block. */
const killed = Effect.gen(function* () {
  const shop = yield* openShop()
  const { broadcast, chain, exceptions, paid, plan, planning, sign } = shop
  const coin = yield* paid("ETH", ether / 10n)
  /** Pays once more, and gives the exception. */
  const payAgain = Effect.gen(function* () {
    const before = (yield* exceptions).map(({ id }) => id)
    yield* pay(chain, { ...coin, amount: `${late}` })
    const all = yield* eventually(exceptions, (found) => found.length > before.length)
    return all.map(({ id }) => id).find((id) => !before.includes(id)) ?? ""
  })
  const customer = someone()
  const refund = (id: string) => ["--refund", id, "--to", customer]
  const why = (id: string) =>
    Effect.map(tilld(planning("other", ...refund(id))), ({ code, stderr }) => `${code}: ${stderr}`)
  const first = yield* payAgain
  yield* plan("first", ...refund(first))
  yield* sign("first")
  expect((yield* broadcast("first", killedAt(6))).signal).toBe("SIGKILL")
  expect(yield* chain.balance(customer)).toBe(late)
  const refused = (id: string) =>
    `1: tilld: ${coin.address} has sent 1 transaction, and tilld knows of 0: one of them may have sent ${id} back already`
  return { ...shop, coin, customer, first, payAgain, refund, refused, why }
})

const noted = "SELECT address, nonce FROM collected ORDER BY nonce"

liveTest("plans no refund from where one was killed before it was noted, until that was run again", function* () {
  const shop = yield* killed
  const { broadcast, coin, first, home, refused, why } = shop
  const second = yield* shop.payAgain
  for (const id of [first, second]) expect(yield* why(id)).toContain(refused(id))
  expect(yield* rows(home, noted)).toEqual([])
  expect((yield* broadcast("first")).code).toBe(0)
  expect(yield* rows(home, noted)).toEqual([{ address: coin.address, nonce: 0 }])
  expect(yield* why(first)).toContain("is not an open exception")
  yield* shop.plan("second", ...shop.refund(second))
  yield* shop.sign("second")
  expect((yield* broadcast("second")).code).toBe(0)
  expect(yield* shop.chain.balance(shop.customer)).toBe(2n * late)
  expect((yield* shop.exceptions).map(({ resolution }) => resolution)).toEqual(["refunded", "refunded"])
  expect(yield* rows(home, noted)).toEqual([0, 1].map((nonce) => ({ address: coin.address, nonce })))

  // A restored database has yet to find the exception: its transaction is not noted.
  yield* shop.daemon.end("SIGTERM")
  const database = new Database(home.database)
  database.exec("DELETE FROM collected")
  database.prepare("DELETE FROM exceptions WHERE id = ?").run(first)
  database.close()
  const { code, stderr } = yield* broadcast("first")
  expect([code, stderr]).toEqual([1, expect.stringContaining(`There is no exception ${first}`)])
  expect(yield* rows(home, noted)).toEqual([])
})

liveTest("plans no refund of what was sent and could not be noted", function* () {
  const { broadcast, config, first, home, refused, why } = yield* killed
  const note = (amount: bigint, ...more: ReadonlyArray<string>) =>
    tilldJson(["payments", "refunded", first, "--amount", `${amount}`, ...more, ...config])
  const sending = Effect.fnUntraced(function* (said: string) {
    const { code, stderr, stdout } = yield* broadcast("first")
    expect([code, stderr]).toEqual([1, expect.stringContaining(said)])
    return JSON.parse(stdout) as SweepResult
  })
  const unnoted = `${first} was sent back and could not be noted`
  // What is left of it is less than what was sent; then the transaction is noted with another amount.
  yield* note(1n)
  const { transfers } = yield* sending(unnoted)
  expect(yield* why(first)).toContain(refused(first))
  yield* note(1n, "--tx", transfers[0]?.hash ?? "")
  yield* sending(unnoted)
  expect(yield* why(first)).toContain(refused(first))
  expect(yield* rows(home, noted)).toEqual([])
  // Once it is closed, no plan can have it.
  yield* note(late - 1n)
  yield* sending(`${first} was decided otherwise`)
  expect(yield* rows(home, noted)).toMatchObject([{ nonce: 0 }])
})
