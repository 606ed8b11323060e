/** Refunds that are on the chain and not in the database: no other plan may send them. */
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import { pay, rows } from "../lib/daemon.ts"
import { root, tilld, tilldJson } from "../lib/tilld.ts"
import { someone } from "./collecting.ts"
import { eventually, network, openShop } from "./shop.ts"

const ether = 10n ** 18n
const late = ether / 50n

/** A shop with coin that came to a paid address, whose refund was killed once it was in a block. */
const killed = Effect.gen(function* () {
  const shop = yield* openShop()
  const { chain, config, daemon, exceptions, file, paid, plan, sign } = shop
  const coin = yield* paid("ETH", ether / 10n)
  // Without an open payment the chain is read once a minute.
  yield* daemon.create({ chain: "ethereum", currency: "DAI", amount: "1000" })
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
    Effect.map(
      tilld(["sweep", "plan", ...network, ...refund(id), "-o", file("other.json"), ...config]),
      ({ code, stderr }) => `${code}: ${stderr}`
    )
  const send = (name: string, env = {}) =>
    tilld(["sweep", "broadcast", file(`${name}.signed`), "--json", ...config], { env })
  const first = yield* payAgain
  yield* plan("first.json", ...refund(first))
  yield* sign("first.json")
  const NODE_OPTIONS = `--import=${join(root, "test/lib/killAt.mjs")}`
  const { signal } = yield* send("first.json", { KILL_ON: "fsyncSync", KILL_AT: "6", NODE_OPTIONS })
  expect(signal).toBe("SIGKILL")
  expect(yield* chain.balance(customer)).toBe(late)
  const refused = (id: string) =>
    `1: tilld: ${coin.address} has sent 1 transaction, and tilld knows of 0: one of them may have sent ${id} back already`
  return { ...shop, coin, customer, first, payAgain, refund, refused, send, why }
})

const noted = "SELECT address, nonce FROM collected ORDER BY nonce"

it.scopedLive(
  "plans no refund from the address of one that was killed before it was noted, until that was run again",
  () =>
    Effect.gen(function* () {
      const { chain, coin, customer, exceptions, first, home, payAgain, plan, refund, refused, send, sign, why } =
        yield* killed
      const second = yield* payAgain
      for (const id of [first, second]) expect(yield* why(id)).toContain(refused(id))
      expect(yield* rows(home, noted)).toEqual([])
      expect((yield* send("first.json")).code).toBe(0)
      expect(yield* rows(home, noted)).toEqual([{ address: coin.address, nonce: 0 }])
      expect(yield* why(first)).toContain("is not an open exception")
      yield* plan("second.json", ...refund(second))
      yield* sign("second.json")
      expect((yield* send("second.json")).code).toBe(0)
      expect(yield* chain.balance(customer)).toBe(2n * late)
      expect((yield* exceptions).map(({ resolution }) => resolution)).toEqual(["refunded", "refunded"])
      expect(yield* rows(home, noted)).toEqual([0, 1].map((nonce) => ({ address: coin.address, nonce })))
    }),
  40_000
)

it.scopedLive(
  "plans no refund of what was sent and could not be noted",
  () =>
    Effect.gen(function* () {
      const { config, first, home, refused, send, why } = yield* killed
      const note = (amount: bigint, ...more: ReadonlyArray<string>) =>
        tilldJson(["payments", "refunded", first, "--amount", `${amount}`, ...more, ...config])
      const sending = Effect.fnUntraced(function* (said: string) {
        const { code, stderr, stdout } = yield* send("first.json")
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
    }),
  40_000
)

it.scopedLive("notes no transaction of a refund whose exception a restored database has yet to find", () =>
  Effect.gen(function* () {
    const { daemon, first, home, send } = yield* killed
    yield* daemon.end("SIGTERM")
    const database = new Database(home.database)
    database.prepare("DELETE FROM exceptions WHERE id = ?").run(first)
    database.close()
    const { code, stderr } = yield* send("first.json")
    expect([code, stderr]).toEqual([1, expect.stringContaining(`There is no exception ${first}`)])
    expect(yield* rows(home, noted)).toEqual([])
  })
)
