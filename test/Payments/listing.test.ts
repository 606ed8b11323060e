import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Tx, Writer } from "../../src/Sql.ts"
import { type Sent, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain } from "../lib/settings.ts"

const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 } as const

const app = testApp({ chains: (["base", "polygon"] as const).map((chain) => testChain({ chain, tokens: [usdc] })) })

const limitRule = "must be an integer from 1 to 100"
const addressRule = "must be an address: 0x and 40 hexadecimal digits, all in one case or with their EIP-55 checksum"
const hashRule = "must be the hash of a transaction: 0x and 64 hexadecimal digits"
const momentRule = "must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31"

liveSuite(app, "the list of payments", (test, it) => {
  const call = (key: string, query: string, sent: Sent = {}) =>
    Effect.flatMap(TestApi, (api) => api.call("GET", `/v1/payments${query}`, { key, ...sent }))

  /** 25 payments, two of three on base, the first three expired, all of them in the same two milliseconds. */
  const made = Effect.gen(function* () {
    const api = yield* TestApi
    const writer = yield* Writer
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
    yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run("UPDATE payments SET created_at = 1700000000000 + (sequence % 2)")
        yield* tx.run("UPDATE payments SET status = 'expired', ended_at = 1 WHERE merchant_ref IN ('0', '1', '2')")
        yield* tx.run("UPDATE payments SET status = 'detecting' WHERE merchant_ref = '3'")
      })
    )
    return { key, ids }
  })

  /** Follows the cursors to the end. */
  const all = (key: string, query: string) =>
    Effect.gen(function* () {
      const refs: Array<string> = []
      let pages = 0
      let cursor = ""
      do {
        const { body } = yield* call(key, `?${query}&cursor=${encodeURIComponent(cursor)}`)
        refs.push(...body.data.map(({ merchantRef }: { merchantRef: string }) => merchantRef))
        cursor = body.cursor ?? ""
        pages += 1
      } while (cursor !== "" && pages < 100)
      return { refs, pages }
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
    const idsOf = ({ body }: Effect.Effect.Success<ReturnType<typeof call>>): ReadonlyArray<string> =>
      body.data.map(({ id }: { id: string }) => id)
    const before = idsOf(yield* call(key, "?limit=9"))
    const first = yield* call(key, "?limit=4")
    const json = { merchantRef: "between", amount: "1", currency: "USDC", chain: "base" }
    yield* api.call("POST", "/v1/payments", { key, json })
    const second = yield* call(key, `?limit=5&cursor=${first.body.cursor}`)
    expect([...idsOf(first), ...idsOf(second)]).toEqual(before)
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
