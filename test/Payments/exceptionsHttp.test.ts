import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"

const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 8 } as const

const app = testApp({
  chains: [testChain({ chain: "base", tokens: [usdc] })],
  rates: testRates({ USDC: "1.5" })
})

let orders = 0

const at = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

liveSuite(app, "exceptions over HTTP", (test) => {
  const create = (key: string, currency: string) =>
    Effect.gen(function* () {
      const api = yield* TestApi
      orders += 1
      const json = { merchantRef: `order ${orders}`, amount: "300000000", currency, chain: "base" }
      return (yield* api.call("POST", "/v1/payments", { key, json })).body
    })

  /** Money that came for a payment and does not count, as the settlement stores it. */
  const insert = (n: number, id: string, rest: string) =>
    Effect.flatMap(Writer, (writer) =>
      writer.write(
        Effect.flatMap(Tx, (tx) =>
          tx.run(
            `INSERT INTO exceptions (id, address, key, payment_id, opened_at, mode, chain, currency, amount, kind, tx_hash,
               closed_at, outcome) VALUES (?, '${at.toLowerCase()}', ?, ?, ?, 'test', 'base', 'ETH', '5', ${rest})`,
            [`exc_${n}`, `key ${n}`, id, n * 1000]
          )
        )
      )
    )

  test("are part of a payment that has any, found and listed, and of no other", function* () {
    const api = yield* TestApi
    const key = yield* api.newKey()
    const clean = yield* create(key, "USDC")
    const made = yield* create(key, "USDC")
    yield* insert(2, made.id, "'unattributed', NULL, NULL, NULL")
    yield* insert(1, made.id, "'wrong_token', '0xt', 9, 'refunded'")
    const common = { payment: made.id, chain: "base", currency: "ETH", amount: "5", address: at }
    const withExceptions = {
      ...made,
      exceptions: [
        // Open ones come first.
        { id: "exc_2", kind: "unattributed", ...common, detectedAt: "1970-01-01T00:00:02.000Z" },
        {
          id: "exc_1",
          kind: "wrong_token",
          ...common,
          txHash: "0xt",
          detectedAt: "1970-01-01T00:00:01.000Z",
          resolution: "refunded",
          resolvedAt: "1970-01-01T00:00:00.009Z"
        }
      ]
    }
    expect((yield* api.call("GET", `/v1/payments/${made.id}`, { key })).body).toEqual(withExceptions)
    expect((yield* api.call("GET", `/v1/payments/${clean.id}`, { key })).body).toEqual(clean)
    expect((yield* api.call("GET", "/v1/payments", { key })).body.data).toEqual([withExceptions, clean])
  })

  test("a payment keeps what it was worth when it was made, by the chain's decimals, where that is known", function* () {
    const api = yield* TestApi
    const reader = yield* Reader
    const key = yield* api.newKey()
    const worth = (id: string) =>
      reader.get<{ usd_value: string | null }>("SELECT usd_value FROM payments WHERE id = ?", [id])
    expect(yield* worth((yield* create(key, "USDC")).id)).toEqual({ usd_value: "4.5" })
    expect(yield* worth((yield* create(key, "ETH")).id)).toEqual({ usd_value: null })
  })
})
