import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { iso } from "../../src/lib/moment.ts"
import { indexMetadata } from "../../src/Payments/metadata.ts"
import { type Sent, TestApi, testApp } from "../lib/api.ts"
import { storeLateMoney } from "../lib/exceptions.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain } from "../lib/settings.ts"
import { execute, inTransaction } from "../lib/store.ts"

const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 } as const

const app = testApp({ chains: (["base", "polygon"] as const).map((chain) => testChain({ chain, tokens: [usdc] })) })

const limitRule = "must be an integer from 1 to 100"
const addressRule = "must be an address: 0x and 40 hexadecimal digits, all in one case or with their EIP-55 checksum"
const hashRule = "must be a transaction's hash: 0x and 64 hexadecimal digits"
const termsRule = "must be metadata[KEY]=VALUE, with 10 different keys at most"
const momentRule = "must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31"

const call = (key: string, query: string, sent: Sent = {}) =>
  Effect.flatMap(TestApi, (api) => api.call("GET", `/v1/payments${query}`, { key, ...sent }))

const refsIn = ({ body }: Effect.Effect.Success<ReturnType<typeof call>>): ReadonlyArray<string> =>
  body.data.map(({ merchantRef }: { merchantRef: string }) => merchantRef)

/** Follows the cursors to the end. */
const all = (key: string, query: string) =>
  Effect.gen(function* () {
    const refs: Array<string> = []
    let pages = 0
    let cursor = ""
    do {
      const page = yield* call(key, `?${query}&cursor=${encodeURIComponent(cursor)}`)
      refs.push(...refsIn(page))
      cursor = page.body.cursor ?? ""
      pages += 1
    } while (cursor !== "" && pages < 100)
    return { refs, pages }
  })

liveSuite(app, "the list of payments", (test, it) => {
  /** 25 payments, two of three on base, the first three expired, all of them in the same two milliseconds. */
  const made = Effect.gen(function* () {
    const api = yield* TestApi
    const key = yield* api.newKey()
    const ids = yield* Effect.forEach(
      Array.from({ length: 25 }, (_, i) => i),
      (i) =>
        Effect.map(
          api.call("POST", "/v1/payments", {
            key,
            json: { merchantRef: `${i}`, amount: "1", currency: "USDC", chain: i % 3 === 2 ? "polygon" : "base" }
          }),
          ({ body }): string => body.id
        ),
      { concurrency: 1 }
    )
    yield* execute("UPDATE payments SET created_at = 1700000000000 + (sequence % 2)")
    yield* execute("UPDATE payments SET status = 'expired', ended_at = 1 WHERE merchant_ref IN ('0', '1', '2')")
    yield* execute("UPDATE payments SET status = 'detecting' WHERE merchant_ref = '3'")
    return { key, ids }
  })

  test("is empty at first: no data, and a cursor that is null", function* () {
    const api = yield* TestApi
    const { body, status } = yield* call(yield* api.newKey(), "")
    expect([status, body]).toEqual([200, { data: [], cursor: null }])
  })

  test("pages through everything once, newest first, whatever the page and the filters", function* () {
    const { key } = yield* made
    const newestFirst = Array.from({ length: 25 }, (_, i) => 24 - i)
    // sequence is the number and one: those made in the later millisecond come first.
    const expected = [...newestFirst.filter((i) => i % 2 === 0), ...newestFirst.filter((i) => i % 2 === 1)]
    const matching = (keep: (i: number) => boolean) => expected.filter(keep).map(String)
    const isBase = (i: number) => i % 3 !== 2
    expect(yield* all(key, "limit=7")).toEqual({ refs: matching(() => true), pages: 4 })
    expect(yield* all(key, "limit=100")).toEqual({ refs: matching(() => true), pages: 1 })
    expect(yield* all(key, "limit=25")).toEqual({ refs: matching(() => true), pages: 1 })
    expect(yield* all(key, "limit=1")).toEqual({ refs: matching(() => true), pages: 25 })
    expect(yield* all(key, "limit=4&chain=base")).toEqual({ refs: matching(isBase), pages: 5 })
    expect(yield* all(key, "limit=2&status=expired")).toEqual({ refs: matching((i) => i < 3), pages: 2 })
    // A payment that is detecting is not pending.
    expect(yield* all(key, "limit=3&status=pending&chain=base")).toEqual({
      refs: matching((i) => isBase(i) && i > 3),
      pages: 5
    })
    expect((yield* all(key, "status=detecting")).refs).toEqual(["3"])
    expect((yield* all(key, "status=failed")).refs).toEqual([])
    const { body } = yield* call(key, "")
    expect(body.data).toHaveLength(20)
  })

  test("payments created between two pages are in neither of them, and hide none", function* () {
    const api = yield* TestApi
    const key = yield* api.newKey()
    const before = refsIn(yield* call(key, "?limit=9"))
    const first = yield* call(key, "?limit=4")
    const json = { merchantRef: "between", amount: "1", currency: "USDC", chain: "base" }
    yield* api.call("POST", "/v1/payments", { key, json })
    const second = yield* call(key, `?limit=5&cursor=${first.body.cursor}`)
    expect([...refsIn(first), ...refsIn(second)]).toEqual(before)
  })

  test("a cursor reveals nothing: it is sealed, and different each time", function* () {
    const api = yield* TestApi
    const key = yield* api.newKey()
    const cursors = yield* Effect.replicateEffect(
      Effect.map(call(key, "?limit=2"), ({ body }) => Buffer.from(body.cursor, "base64url")),
      8
    )
    expect(new Set(cursors.map((cursor) => cursor.toString("hex"))).size).toBe(8)
    // No byte of it, at any place, is the same in all of them but for the version that it begins with.
    const [first] = cursors
    const same = Array.from(first ?? []).filter((byte, i) => cursors.every((cursor) => cursor[i] === byte))
    expect(same.length).toBeLessThanOrEqual(2)
  })

  test("a cursor belongs to one list: other filters refuse it, other page sizes do not", function* () {
    const api = yield* TestApi
    const key = yield* api.newKey()
    const { body } = yield* call(key, "?limit=2&chain=base")
    const { cursor } = body
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/)
    expect((yield* call(key, `?limit=5&chain=base&cursor=${cursor}`)).status).toBe(200)
    const forge = (text: string) => Buffer.from(text).toString("base64url")
    const refused = [
      `?cursor=${cursor}`,
      `?chain=polygon&cursor=${cursor}`,
      `?chain=base&status=pending&cursor=${cursor}`,
      `?chain=base&cursor=${cursor}A`,
      `?chain=base&cursor=${cursor}%3D`,
      `?chain=base&cursor=${forge("1700000000000/3//base/x")}`,
      `?chain=base&cursor=${forge("01700000000000/3//base")}`,
      `?chain=base&cursor=${forge("NaN/NaN//base")}`,
      `?chain=base&cursor=${forge("1e12/3//base")}`,
      "?chain=base&cursor=nonsense",
      "?chain=base&cursor=%00"
    ]
    for (const query of refused) {
      const { body, headers, status } = yield* call(key, query)
      expect([status, body], query).toEqual([
        400,
        {
          error: {
            code: "INVALID_CURSOR",
            message: "The cursor is not one of this list: take it from the page before, with the same filters.",
            requestId: headers["x-request-id"]
          }
        }
      ])
    }
  })

  test("belongs to its mode, and so do its cursors", function* () {
    const api = yield* TestApi
    const live = yield* api.newKey("live")
    expect((yield* call(live, "")).body.data).toEqual([])
    const { cursor } = (yield* call(yield* api.newKey("test"), "?limit=2")).body
    const { body, status } = yield* call(live, `?cursor=${cursor}`)
    expect([status, body.error?.code]).toEqual([400, "INVALID_CURSOR"])
  })

  it.effect.each([
    ["limit=0", { limit: limitRule }],
    ["limit=101", { limit: limitRule }],
    ["limit=-1", { limit: limitRule }],
    ["limit=1.5", { limit: limitRule }],
    ["limit=1e1", { limit: limitRule }],
    ["limit=", { limit: limitRule }],
    ["limit=ten", { limit: limitRule }],
    ["limit=1&limit=2", { limit: limitRule }],
    ["cursor=a&cursor=b", { cursor: "must be given once" }],
    ["status=paid", { status: "must be pending, detecting, confirmed, expired or failed" }],
    ["status=", { status: "must be pending, detecting, confirmed, expired or failed" }],
    ["merchantRef=", { merchantRef: "must be a string of 1 to 128 printable characters" }],
    ["merchantRef=a%00", { merchantRef: "must not have the character U+0000, which cannot be seen: leave it out" }],
    ["address=", { address: addressRule }],
    ["address=0xf39fd6e51aad88f6f4ce6ab8827279cfffb9226", { address: addressRule }],
    ["address=0xF39fd6e51aad88f6f4ce6ab8827279cfffb92266", { address: addressRule }],
    ["txHash=", { txHash: hashRule }],
    [`txHash=0x${"g".repeat(64)}`, { txHash: hashRule }],
    [`txHash=${"1".repeat(64)}`, { txHash: hashRule }],
    ["from=0xad", { from: "must be an address: 0x and 40 hexadecimal digits" }],
    ["search=%20", { search: "must be given once, and not be empty" }],
    ["metadata=a", { metadata: termsRule }],
    ["metadata[a]=1&metadata[a]=2", { metadata: termsRule }],
    ["metadata=a&metadata[a]=1", { metadata: termsRule }],
    [Array.from({ length: 11 }, (_, i) => `metadata[${i}]=`).join("&"), { metadata: termsRule }],
    ["chain[a]=base", { chain: "must be ethereum, polygon, arbitrum, optimism or base" }],
    ["meta[a]=1", { "meta[a]": "is not a query parameter of this endpoint" }],
    ["createdAfter=yesterday", { createdAfter: momentRule }],
    ["createdAfter=2026-01-31T12:00:00", { createdAfter: momentRule }],
    ["createdBefore=2026-02-30", { createdBefore: momentRule }],
    ["txhash=0x1", { txhash: "is not a query parameter of this endpoint: did you mean txHash?" }],
    ["chain=solana", { chain: "must be ethereum, polygon, arbitrum, optimism or base" }],
    ["Status=pending", { Status: "is not a query parameter of this endpoint: did you mean status?" }],
    ["__proto__=1", { ["__proto__"]: "is not a query parameter of this endpoint" }],
    [
      "page=2&limit=0&chain=x",
      {
        page: "is not a query parameter of this endpoint",
        limit: limitRule,
        chain: "must be ethereum, polygon, arbitrum, optimism or base"
      }
    ]
  ] as const)("?%s is refused", ([query, problems]) =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const { body, status } = yield* call(yield* api.newKey(), `?${query}`)
      const found = body.error.details.map(({ message, path }: { message: string; path: string }) => [path, message])
      expect([status, new Map(found)]).toEqual([400, new Map(Object.entries(problems))])
    })
  )
})

const hash = (digit: string) => `0x${digit.repeat(64)}`

liveSuite(app, "payments are found", (test) => {
  const seconds = (n: number) => 1_700_000_000_000 + n * 1_000
  const time = (n: number) => iso(seconds(n))

  /** Payments of one account, by reference: `order 0` to `order 5`, a second apart, in turn on base and on polygon. */
  const shop = Effect.gen(function* () {
    const { call: send, newAccount, newKey } = yield* TestApi
    const account = yield* newAccount("Shop")
    const key = yield* newKey("test", undefined, account)
    const made = yield* Effect.forEach(
      Array.from({ length: 6 }, (_, i) => i),
      (i) => {
        const chain = i % 2 === 0 ? "base" : "polygon"
        const json = { merchantRef: `order ${i}`, amount: "1000", currency: "USDC", chain }
        return Effect.map(send("POST", "/v1/payments", { key, json }), ({ body }) => body)
      },
      { concurrency: 1 }
    )
    for (const [i, { id }] of made.entries()) {
      yield* execute("UPDATE payments SET created_at = ? WHERE id = ?", [seconds(i), id])
    }
    const find = (query: string, by = key) => Effect.map(call(by, `?${query}`), refsIn)
    return { account, find, key, made }
  })

  /** Money of a transaction at a payment's address. */
  const receive = (id: string, txHash: string, canonical: 0 | 1 = 1, sender: string | null = null) =>
    execute(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
         payment_id, canonical, corroborated, seen_at, sender)
       SELECT 'base', 'test', '0xb' || ?, lower(address), 'log:' || ?, 101, 1, ?, 'USDC', '5', id, ?, 1, 0, ?
       FROM payments WHERE id = ?`,
      [canonical, txHash, txHash, canonical, sender, id]
    )

  /** Each test's answers before the worker has indexed the metadata, and after. */
  const beforeAndAfterIndexing = <E, R>(asked: Effect.Effect<void, E, R>) =>
    Effect.zipRight(asked, Effect.zipRight(inTransaction(indexMetadata(1_000)), asked))

  const describe = (ids: ReadonlyArray<string>, ...metadata: ReadonlyArray<object>) =>
    Effect.forEach(
      metadata,
      (each, i) => execute("UPDATE payments SET metadata = ? WHERE id = ?", [JSON.stringify(each), ids[i] ?? ""]),
      { concurrency: 1 }
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

  test("by who paid, in any case, newest first and each once; not by a sender that a second provider corrects", function* () {
    const { account, find, key, made } = yield* shop
    const [ada, eve] = [`0x${"ad".repeat(20)}`, `0x${"ee".repeat(20)}`]
    for (const i of [1, 4, 2]) yield* receive(made[i].id, hash(`${i}`), 1, ada)
    yield* receive(made[4].id, hash("7"), 0, ada)
    yield* receive(made[0].id, hash("8"), 1, eve)
    expect(yield* find(`from=0x${"AD".repeat(20)}`)).toEqual(["order 4", "order 2", "order 1"])
    expect(yield* all(key, `from=${ada}&limit=1`)).toEqual({ refs: ["order 4", "order 2", "order 1"], pages: 3 })
    expect(yield* find(`from=${ada}&chain=base&txHash=${hash("2")}`)).toEqual(["order 2"])
    expect(yield* find(`from=${ada}&txHash=${hash("8")}`)).toEqual([])
    expect(yield* find(`from=${ada}&createdAfter=${time(1)}&createdBefore=${time(4)}`)).toEqual(["order 2", "order 1"])
    expect(yield* find(`from=${ada}`, yield* (yield* TestApi).newKey("live", undefined, account))).toEqual([])
    yield* execute("UPDATE receipts SET sender = ? WHERE tx_hash IN (?, ?)", [eve, hash("4"), hash("2")])
    yield* execute("UPDATE receipts SET sender = NULL WHERE tx_hash = ?", [hash("8")])
    // Another of its receipts still has her.
    expect(yield* find(`from=${ada}`)).toEqual(["order 4", "order 1"])
    expect(yield* find(`search=${eve}`)).toEqual(["order 4", "order 2"])
  })

  test("by metadata: texts, numbers and booleans of its first level, in any case, exactly at once and once indexed", function* () {
    const { find, key, made } = yield* shop
    const long = "ß".repeat(499)
    const ids = made.map(({ id }) => id)
    const nested = { customer: { email: "x" }, list: ["x"], none: null }
    const [first, second] = [
      { email: "Ada@Example.org", "a]b": 1.5, vip: true },
      { email: "ada@example.org", note: `${long}1` }
    ]
    yield* describe(ids, first, second, { note: `${long}2`, other: "ada@example.org" }, nested, {
      __proto__x: "",
      '"': "é"
    })
    const asked = Effect.gen(function* () {
      expect(yield* find("metadata[email]=ADA@example.org")).toEqual(["order 1", "order 0"])
      expect(yield* all(key, "metadata%5Bemail%5D=ada@example.org&limit=1")).toEqual({
        refs: ["order 1", "order 0"],
        pages: 2
      })
      expect(yield* find("metadata[email]=ada@example.org&metadata[vip]=true")).toEqual(["order 0"])
      expect(yield* find("metadata[email]=ada@example.org&chain=polygon&status=pending")).toEqual(["order 1"])
      expect(yield* find("metadata[email]=ada@example.org&merchantRef=order%201")).toEqual(["order 1"])
      expect(yield* find("metadata[a]b]=1.5")).toEqual(["order 0"])
      expect(yield* find(`metadata[note]=${encodeURIComponent(long)}2`)).toEqual([])
      expect(yield* find("metadata[__proto__x]=&metadata[%22]=%C3%89")).toEqual(["order 4"])
      expect(yield* find("search=ada@example.ORG")).toEqual(["order 2", "order 1", "order 0"])
      expect(yield* all(key, "search=ada@example.org&limit=1")).toMatchObject({ pages: 3 })
      for (const none of ["customer]=x", "list]=x", "none]=null", "email]=", "email]=ada", "__proto__]=", "vip]=1"]) {
        expect([none, yield* find(`metadata[${none}`)]).toEqual([none, []])
      }
      expect(yield* find("metadata[email]=ada@example.org", yield* (yield* TestApi).newKey())).toEqual([])
    })
    yield* beforeAndAfterIndexing(asked)
    expect(yield* find("merchantRef=order%201&search=order%202")).toEqual([])
    expect(yield* find("merchantRef=order%201&search=%20order%201%20")).toEqual(["order 1"])
  })

  test("beyond what other filters leave out of what their metadata finds, however many", function* () {
    const { find, key } = yield* shop
    const { call: send } = yield* TestApi
    const json = {
      merchantRef: "oldest",
      amount: "1",
      currency: "USDC",
      chain: "polygon",
      metadata: { web: "yes", rare: 1 }
    }
    const { body } = yield* send("POST", "/v1/payments", { key, json })
    yield* execute("UPDATE payments SET created_at = 1 WHERE id = ?", [body.id])
    yield* execute(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
       INSERT INTO payments (id, account_id, mode, merchant_ref, amount, currency, chain, address, checkout_token, wallet,
         wallet_index, status, created_at, expires_at, metadata)
       SELECT 'pay_web' || i, account_id, mode, 'web ' || i, '1', 'USDC', 'base', 'web' || i, 'web' || i, wallet, 100000 + i,
         'pending', 1600000000000, 1700000000000, '{"web":"yes"}' FROM n, payments WHERE id = ?`,
      [body.id]
    )
    yield* beforeAndAfterIndexing(
      Effect.gen(function* () {
        expect(yield* find("metadata[web]=yes&chain=polygon")).toEqual(["oldest"])
        expect(yield* find("metadata[web]=yes&metadata[rare]=1")).toEqual(["oldest"])
        expect((yield* all(key, "metadata[web]=yes&limit=100")).refs).toHaveLength(2501)
      })
    )
  })

  test("by the id of what is theirs and by their checkout page, each before a reference that looks like it", function* () {
    const { find, made, key } = yield* shop
    const { call: send } = yield* TestApi
    const [{ id }, { id: quoted }, { checkoutUrl, id: shown }] = made
    const token = checkoutUrl.split("/").at(-1)
    const exception = yield* storeLateMoney(id, 7001)
    const quote = `quote_${"q".repeat(22)}`
    yield* execute("INSERT INTO quotes SELECT ?, account_id, mode, '{}', 0, 0 FROM payments WHERE id = ?", [quote, id])
    yield* execute("UPDATE payments SET quote_id = ? WHERE id = ?", [quote, quoted])
    yield* execute(
      `INSERT INTO refunds (id, payment_id, account_id, mode, address, chain, currency, amount, status, created_at, changed_at,
         block_time)
       SELECT ?, id, account_id, mode, address, chain, currency, '1', 'noted', 0, 0, 0 FROM payments WHERE id = ?`,
      ["ref_1", shown]
    )
    for (const merchantRef of [exception, quote, "ref_1", token, shown]) {
      yield* send("POST", "/v1/payments", { key, json: { merchantRef, amount: "1", currency: "USDC", chain: "base" } })
    }
    const named = {
      [exception]: 0,
      [quote]: 1,
      ref_1: 2,
      [token]: 2,
      [checkoutUrl]: 2,
      [`${checkoutUrl}?lang=de`]: 2,
      [shown]: 2
    }
    for (const [text, i] of Object.entries(named)) {
      expect([text, yield* find(`search=${encodeURIComponent(text)}`)]).toEqual([text, [`order ${i}`]])
      expect(yield* find(`search=${encodeURIComponent(text)}`, yield* (yield* TestApi).newKey())).toEqual([])
    }
    expect(yield* find("search=exc_none")).toEqual([])
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
    for (const { id } of made) yield* receive(id, hash("e"))
    const refs = [5, 4, 3, 2, 1, 0].map((i) => `order ${i}`)
    for (const filters of [`txHash=${hash("e")}`, `createdAfter=${time(0)}&createdBefore=${time(6)}`]) {
      expect(yield* all(key, `${filters}&limit=2`), filters).toEqual({ refs, pages: 3 })
    }
    const page = (query: string) => call(key, `?${query}`)
    const { cursor } = (yield* page(`createdAfter=${time(0)}&limit=2`)).body
    expect((yield* page(`createdAfter=${time(0)}&limit=2&cursor=${cursor}`)).status).toBe(200)
    for (const other of ["", `createdAfter=${time(1)}`, `createdBefore=${time(0)}`, `txHash=${hash("e")}`]) {
      const { body, status } = yield* page(`${other}&cursor=${cursor}`)
      expect([status, body.error.code], other).toEqual([400, "INVALID_CURSOR"])
    }
  })
})
