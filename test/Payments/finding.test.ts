import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { iso } from "../../src/lib/moment.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"

const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 } as const

const app = testApp({
  chains: (["base", "polygon"] as const).map((chain) => testChain({ chain, tokens: [usdc] }))
})

const hash = (digit: string) => `0x${digit.repeat(64)}`

liveSuite(app, "payments are found", (test) => {
  const seconds = (n: number) => 1_700_000_000_000 + n * 1_000
  const time = (n: number) => iso(seconds(n))

  /** Payments of one account, by reference: `order 0` to `order 5`, a second apart, in turn on base and on polygon. */
  const shop = Effect.gen(function* () {
    const { call, newAccount, newKey } = yield* TestApi
    const account = yield* newAccount("Shop")
    const key = yield* newKey("test", undefined, account)
    const made = yield* Effect.forEach(
      Array.from({ length: 6 }, (_, i) => i),
      (i) => {
        const chain = i % 2 === 0 ? "base" : "polygon"
        const json = { merchantRef: `order ${i}`, amount: "1000", currency: "USDC", chain }
        return Effect.map(call("POST", "/v1/payments", { key, json }), ({ body }) => body)
      },
      { concurrency: 1 }
    )
    for (const [i, { id }] of made.entries()) {
      yield* execute("UPDATE payments SET created_at = ? WHERE id = ?", [seconds(i), id])
    }
    const find = (query: string, by = key) =>
      Effect.map(
        call("GET", `/v1/payments?${query}`, { key: by }),
        ({ body }): ReadonlyArray<string> => body.data.map(({ merchantRef }: { merchantRef: string }) => merchantRef)
      )
    return { account, find, key, made }
  })

  /** Money of a transaction at a payment's address. */
  const receive = (id: string, txHash: string, canonical: 0 | 1 = 1) =>
    execute(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
         payment_id, canonical, corroborated, seen_at)
       SELECT 'base', 'test', '0xb' || ?, lower(address), 'log:' || ?, 101, 1, ?, 'USDC', '5', id, ?, 1, 0
       FROM payments WHERE id = ?`,
      [canonical, txHash, txHash, canonical, id]
    )

  test("by their reference, which is unique in an account and mode", function* () {
    const { find, key } = yield* shop
    const { call, newKey } = yield* TestApi
    expect(yield* find("merchantRef=order%202")).toEqual(["order 2"])
    expect(yield* find("merchantRef=order")).toEqual([])
    expect(yield* find("merchantRef=order%202&chain=base&status=pending")).toEqual(["order 2"])
    expect(yield* find("merchantRef=order%202&chain=polygon")).toEqual([])
    expect(yield* find("merchantRef=order%202", yield* newKey())).toEqual([])
    const json = { merchantRef: "Bestellung 5/ü – 注文", amount: "1", currency: "ETH", chain: "base" }
    yield* call("POST", "/v1/payments", { key, json })
    expect(yield* find(`merchantRef=${encodeURIComponent(json.merchantRef)}`)).toEqual([json.merchantRef])
  })

  test("by their address in any case, and another account's by none", function* () {
    const { find, made } = yield* shop
    const { address } = made[3]
    const upper = `0x${address.slice(2).toUpperCase()}`
    for (const text of [address, address.toLowerCase(), upper]) {
      expect(yield* find(`address=${text}`), text).toEqual(["order 3"])
    }
    expect(yield* find(`address=${address}&merchantRef=order%204`)).toEqual([])
    expect(yield* find(`address=${address}`, yield* (yield* TestApi).newKey())).toEqual([])
  })

  test("by a transaction, newest first: also one that a reorg orphaned, and one that only an operator has named", function* () {
    const { account, find, made } = yield* shop
    const { newKey } = yield* TestApi
    for (const i of [1, 4, 2]) yield* receive(made[i].id, hash("a"))
    yield* receive(made[5].id, hash("b"), 0)
    yield* execute("UPDATE payments SET tx_hash = ? WHERE id = ?", [hash("c"), made[0].id])
    yield* execute("UPDATE payments SET tx_hash = ? WHERE id = ?", [hash("a"), made[4].id])
    expect(yield* find(`txHash=${hash("a")}`)).toEqual(["order 4", "order 2", "order 1"])
    expect(yield* find(`txHash=${hash("A")}&chain=base`)).toEqual(["order 4", "order 2"])
    expect(yield* find(`txHash=${hash("b")}`)).toEqual(["order 5"])
    expect(yield* find(`txHash=${hash("c")}`)).toEqual(["order 0"])
    expect(yield* find(`txHash=${hash("d")}`)).toEqual([])
    expect(yield* find(`txHash=${hash("a")}`, yield* newKey())).toEqual([])
    expect(yield* find(`txHash=${hash("a")}`, yield* newKey("live", undefined, account))).toEqual([])
  })

  test("by when they were created: from a time on, and before another", function* () {
    const { find } = yield* shop
    expect(yield* find(`createdAfter=${time(2)}&createdBefore=${time(4)}`)).toEqual(["order 3", "order 2"])
    expect(yield* find(`createdAfter=${time(5)}`)).toEqual(["order 5"])
    expect(yield* find(`createdBefore=${time(1)}&chain=base`)).toEqual(["order 0"])
    expect(yield* find(`createdAfter=${time(4)}&createdBefore=${time(2)}`)).toEqual([])
    expect(yield* find("createdAfter=2100-01-01")).toEqual([])
  })

  test("page by page, whatever the filters, each once; and a cursor belongs to its filters", function* () {
    const { key, made } = yield* shop
    const { call } = yield* TestApi
    for (const { id } of made) yield* receive(id, hash("e"))
    const page = (query: string) => call("GET", `/v1/payments?${query}`, { key })
    for (const filters of [`txHash=${hash("e")}`, `createdAfter=${time(0)}&createdBefore=${time(6)}`]) {
      const refs: Array<string> = []
      let cursor = ""
      do {
        const { body } = yield* page(`${filters}&limit=2&cursor=${cursor}`)
        refs.push(...body.data.map(({ merchantRef }: { merchantRef: string }) => merchantRef))
        cursor = body.cursor ?? ""
      } while (cursor !== "" && refs.length < made.length)
      expect([refs, cursor], filters).toEqual([[5, 4, 3, 2, 1, 0].map((i) => `order ${i}`), ""])
    }
    const { cursor } = (yield* page(`createdAfter=${time(0)}&limit=2`)).body
    expect((yield* page(`createdAfter=${time(0)}&limit=2&cursor=${cursor}`)).status).toBe(200)
    for (const other of ["", `createdAfter=${time(1)}`, `createdBefore=${time(0)}`, `txHash=${hash("e")}`]) {
      const { body, status } = yield* page(`${other}&cursor=${cursor}`)
      expect([status, body.error.code], other).toEqual([400, "INVALID_CURSOR"])
    }
  })
})
