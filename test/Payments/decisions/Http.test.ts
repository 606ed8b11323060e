import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { DatedTransfer } from "../../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import { problemsIn, TestApi, testApp } from "../../lib/api.ts"
import { storeMoneyFor } from "../../lib/exceptions.ts"
import { liveSuite } from "../../lib/scopedTest.ts"
import { testChain } from "../../lib/settings.ts"
import { execute, inTransaction, rows } from "../../lib/store.ts"

const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 } as const
const payer = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
const base: Network = { chain: "base", mode: "test" }
const polygon: Network = { chain: "polygon", mode: "test" }
const hash = (n: number) => `0x${n.toString(16).padStart(64, "0")}`

// No watcher runs: each test stores the money of the chains.
const app = testApp({
  chains: [testChain({ chain: "base", tokens: [usdc] }), testChain({ chain: "polygon", tokens: [usdc] })]
})

let shops = 0
/** Blocks of the chains; payments that are stored with money have it in earlier ones. */
let mined = 200

interface Created {
  readonly id: string
  readonly address: string
}

liveSuite(app, "exceptions over HTTP", (test, it) => {
  /** A shop of an account of its own. */
  const shop = Effect.gen(function* () {
    const api = yield* TestApi
    const name = `shop-${++shops}`
    const account = yield* api.newAccount(name)
    const key = yield* api.newKey("test", undefined, account)
    const payment = (at: number, chain = "base") =>
      Effect.map(
        api.call("POST", "/v1/payments", {
          key,
          json: { merchantRef: `${name}/${at}`, amount: "1000", currency: "USDC", chain }
        }),
        ({ body }): Created => body
      )
    const list = (query = "", as = key) => api.call("GET", `/v1/exceptions${query}`, { key: as })
    const resolve = (id: string, json: unknown, headers = {}, as = key) =>
      api.call("POST", `/v1/exceptions/${id}/resolve`, { key: as, json, headers })
    const show = (id: string) => Effect.map(api.call("GET", `/v1/payments/${id}`, { key }), ({ body }) => body)
    return { account, api, key, list, payment, resolve, show }
  })

  /** The payment has expired: everything that comes is late. */
  const expire = ({ id }: Created) =>
    execute("UPDATE payments SET status = 'expired', ended_at = expires_at WHERE id = ?", [id])

  /** A transfer of so much, of a block long after every deadline. */
  const pay = (to: Created, amount: bigint, over: Partial<DatedTransfer> = {}, network = base) =>
    Effect.gen(function* () {
      const settlement = yield* Settlement
      const number = mined + 1
      mined += 3
      const transfer: DatedTransfer = {
        ...{ blockNumber: number, blockHash: hash(number), blockTime: 4_000_000_000, txHash: hash(number) },
        ...{ address: to.address.toLowerCase(), sender: payer.toLowerCase(), currency: "USDC", amount },
        position: `log:${hash(number)}:USDC:${amount}:0`,
        ...over
      }
      // Later payments are due by this machine's clock: the head's own time is long ago.
      const head = { number: number + 2, hash: hash(number + 2), time: 1 }
      yield* inTransaction(
        Effect.gen(function* () {
          yield* LedgerRepo.startScan(network, { number: 0, hash: hash(0), time: 0 }, undefined)
          const touched = yield* LedgerRepo.keepReceipts(network, [transfer], true)
          yield* LedgerRepo.moveScan(network, head)
          yield* settlement.settle({ network, head }, touched)
        })
      )
      return transfer.txHash ?? ""
    })

  /** An expired payment with money that came late. */
  const late = Effect.fnUntraced(function* (of: Effect.Effect.Success<typeof shop>, at: number, amount = 700n) {
    const payment = yield* of.payment(at)
    yield* expire(payment)
    const txHash = yield* pay(payment, amount)
    const { body } = yield* of.list(`?payment=${payment.id}`)
    return { payment, txHash, exception: body.data[0] }
  })

  /** The acts of an account, in their order. */
  const audit = ({ account }: { readonly account: string }) => {
    const acts = "SELECT act, detail FROM audit WHERE account_id = ? ORDER BY sequence"
    return Effect.map(rows<{ act: string; detail: string }>(acts, [account]), (all) =>
      all.map(({ act, detail }) => ({ act, detail: JSON.parse(detail) }))
    )
  }

  test("an exception has what a refund or a collection needs; its payment shows the same, and no other", function* () {
    const mine = yield* shop
    const clean = yield* mine.payment(0)
    const { exception, payment, txHash } = yield* late(mine, 1)
    const [row] = yield* rows<{ at: number }>("SELECT wallet_index AS at FROM payments WHERE id = ?", [payment.id])
    expect(exception).toEqual({
      id: expect.stringMatching(/^exc_[A-Za-z0-9_-]{22}$/),
      payment: payment.id,
      merchantRef: expect.any(String),
      kind: "late",
      chain: "base",
      currency: "USDC",
      amount: "700",
      from: payer,
      txHash,
      address: payment.address,
      derivationIndex: row?.at,
      path: `m/44'/60'/1'/0/${row?.at}`,
      detectedAt: expect.stringMatching(/Z$/)
    })
    const shown = yield* mine.show(payment.id)
    expect(shown.exceptions).toEqual([exception])
    expect(yield* mine.show(clean.id)).toEqual(clean)
    // What came is with one payment alone.
    const { receipts, ...listed } = shown
    expect(receipts).toMatchObject([{ txHash, amount: "700", kind: "late" }])
    expect((yield* mine.api.call("GET", "/v1/payments", { key: mine.key })).body.data).toEqual([listed, clean])
  })

  test("the filters select by state, kind, chain and payment, and pages follow their cursor, newest first", function* () {
    const mine = yield* shop
    const [one, two] = [yield* mine.payment(1), yield* mine.payment(2, "polygon")]
    yield* expire(one)
    yield* expire(two)
    yield* pay(one, 10n)
    yield* pay(two, 20n, {}, polygon)
    yield* pay(one, 30n, { currency: "USDC.e" })
    yield* pay(two, 40n, {}, base)
    yield* pay(one, 50n)
    const found = (query: string) =>
      Effect.map(mine.list(query), ({ body }) => body.data.map(({ amount }: { amount: string }) => Number(amount) / 10))
    const [newest] = (yield* mine.list("?limit=1")).body.data
    expect((yield* mine.resolve(newest.id, { action: "refund" })).status).toBe(200)
    expect(yield* found("")).toEqual([5, 4, 3, 2, 1])
    expect(yield* found("?status=open")).toEqual([4, 3, 2, 1])
    expect(yield* found("?status=resolved")).toEqual([5])
    expect(yield* found("?kind=late")).toEqual([5, 2, 1])
    expect(yield* found("?chain=polygon")).toEqual([2])
    expect(yield* found("?kind=late&chain=base&status=open")).toEqual([1])
    expect(yield* found(`?payment=${two.id}`)).toEqual([4, 2])
    expect(yield* found(`?payment=${two.id}&kind=wrong_chain&status=open&chain=base`)).toEqual([4])
    expect(yield* found("?payment=pay_none")).toEqual([])

    const first = yield* mine.list("?limit=2&status=open")
    // Exceptions that are decided or opened between two pages do not shift the others.
    yield* mine.resolve(first.body.data[0].id, { action: "refund" })
    yield* pay(one, 60n)
    const second = yield* mine.list(`?limit=2&status=open&cursor=${first.body.cursor}`)
    const amounts = [first, second].flatMap(({ body }) => body.data.map(({ amount }: { amount: string }) => amount))
    expect([amounts, second.body.cursor]).toEqual([["40", "30", "20", "10"], null])
    const foreign = yield* mine.list(`?limit=2&cursor=${first.body.cursor}`)
    expect([foreign.status, foreign.body.error.code]).toEqual([400, "INVALID_CURSOR"])
  })

  const kindRule = "must be overpaid, underpaid, late, wrong_token, wrong_chain, unattributed, found_late or reorged"
  it.effect.each([
    ["status=dead", "status", "must be open or resolved"],
    ["kind=paid_again", "kind", kindRule],
    ["kind=unknown_payment", "kind", kindRule],
    ["chain=solana", "chain", "must be ethereum, polygon, arbitrum, optimism or base"],
    ["limit=0", "limit", "must be an integer from 1 to 100"],
    ["page=2", "page", "is not a query parameter of this endpoint"]
  ] as const)("the list refuses %s", ([query, path, rule]) =>
    Effect.gen(function* () {
      const answer = yield* (yield* shop).list(`?${query}`)
      expect([answer.status, problemsIn(answer)]).toEqual([400, { [path]: rule }])
    })
  )

  test("accept: the payment is confirmed by that money, and the act is in the audit log", function* () {
    const mine = yield* shop
    const { exception, payment, txHash } = yield* late(mine, 1)
    const other = yield* pay(payment, 50n, {}, polygon)
    const part = { amount: "200", txHash: hash(3) }
    yield* mine.resolve(exception.id, { action: "refund", ...part })
    const answer = yield* mine.resolve(exception.id, { action: "accept", note: "fine by us" })
    const [resolvedAt, refundedAt] = [expect.stringMatching(/Z$/), expect.stringMatching(/Z$/)]
    const noted = { id: expect.stringMatching(/^ref_/), status: "noted" }
    const rest = { amount: "500", amountRefunded: "200", refunds: [{ ...part, ...noted, refundedAt }] }
    const decision = { resolution: "accepted", resolvedAt, note: "fine by us" }
    expect([answer.status, answer.body]).toEqual([200, { ...exception, ...rest, ...decision }])
    const shown = yield* mine.show(payment.id)
    expect(shown).toMatchObject({ status: "confirmed", txHash })
    // Open ones come first.
    expect(shown.exceptions).toMatchObject([{ txHash: other }, answer.body])
    const detail = { id: exception.id, note: "fine by us" }
    expect((yield* audit(mine)).at(-1)).toEqual({ act: "payments accept", detail })
    // Its own money is in its sums.
    expect(shown).not.toHaveProperty("acceptedAs")
    const elsewhere = shown.exceptions[0].id
    yield* mine.resolve(elsewhere, { action: "accept" })
    const money = { exception: elsewhere, chain: "polygon", currency: "USDC", amount: "50", txHash: other }
    expect((yield* mine.show(payment.id)).acceptedAs).toEqual([money])
  })

  test("refund: each is recorded by itself; the audit log names it, and says what is a repetition", function* () {
    const mine = yield* shop
    const { exception, payment } = yield* late(mine, 1)
    const { id } = exception
    const refund = (json: object) => mine.resolve(id, { action: "refund", ...json })
    const [upper, refundedAt] = [`0x${"AB".repeat(32)}`, expect.stringMatching(/Z$/)]
    const tx = upper.toLowerCase()
    const named = { id: expect.stringMatching(/^ref_/), status: "noted", refundedAt }
    const first = { ...named, amount: "200", txHash: tx }
    const part = { amount: "500", amountRefunded: "200", refunds: [first], resolutionTxHash: tx }
    expect((yield* refund({ amount: "200", txHash: upper })).body).toEqual({ ...exception, ...part })
    yield* refund({ amount: "100" })
    const whole = yield* refund({ txHash: hash(2) })
    expect(whole.body).toEqual({
      ...exception,
      refunds: [first, { ...named, amount: "100" }, { ...named, amount: "400", txHash: hash(2) }],
      resolution: "refunded",
      resolvedAt: expect.stringMatching(/Z$/),
      resolutionTxHash: hash(2)
    })
    expect((yield* refund({ txHash: hash(2) })).body).toEqual(whole.body)
    expect((yield* mine.show(payment.id)).status).toBe("expired")
    const other = yield* late(mine, 2)
    for (const json of [{ action: "accept" }, { action: "accept" }]) yield* mine.resolve(other.exception.id, json)
    const [one, two, three] = whole.body.refunds
    expect((yield* audit(mine)).map(({ detail }) => detail)).toEqual([
      { id, amount: "200", tx, refund: one.id },
      { id, amount: "100", refund: two.id },
      { id, tx: hash(2), refund: three.id },
      { id, tx: hash(2), refund: three.id, repeated: true },
      { id: other.exception.id },
      { id: other.exception.id, repeated: true }
    ])
  })

  test("the same decision again gets the same response, with an idempotency key and without; another one a 409", function* () {
    const mine = yield* shop
    const { exception } = yield* late(mine, 1)
    const headers = { "idempotency-key": "once" }
    const refund = { action: "refund", txHash: hash(9) }
    const first = yield* mine.resolve(exception.id, refund, headers)
    const replayed = yield* mine.resolve(exception.id, refund, headers)
    expect([replayed.headers["idempotent-replayed"], replayed.text]).toEqual(["true", first.text])
    for (const body of [refund, { action: "refund" }]) {
      const again = yield* mine.resolve(exception.id, body)
      expect([again.status, again.headers["idempotent-replayed"], again.body]).toEqual([200, undefined, first.body])
    }
    for (const body of [{ action: "accept" }, { action: "refund", txHash: hash(8) }]) {
      const other = yield* mine.resolve(exception.id, body)
      expect([other.status, other.body.error.code]).toEqual([409, "EXCEPTION_RESOLVED"])
      expect(other.body.error.message).toContain(`was refunded at ${first.body.resolvedAt}`)
    }
    const events = "SELECT 1 FROM events WHERE kind = 'payment.exception' AND payment_id = ?"
    expect(yield* rows(events, [exception.payment])).toHaveLength(2)
  })

  const rules = {
    action: "must be accept or refund",
    txHash: "must be a transaction's hash: 0x and 64 hexadecimal digits",
    amount: "must be a string of digits in the smallest unit of what came, without sign or leading zero",
    note: "must be a string of 1 to 500 characters, without control characters"
  }
  it.effect.each([
    [{}, { action: "is required" }],
    [{ action: "gone" }, { action: rules.action }],
    [{ action: "accept", txHash: "0x1" }, { txHash: rules.txHash }],
    [{ action: "accept", amount: "5" }, { amount: "must come with refund: all of an exception is accepted" }],
    [{ action: "refund", amount: "701" }, { amount: expect.stringContaining("must be at most 0.0007 USDC (700") }],
    ...["0", "-1", "1.5", "0x1", 5, (2n ** 256n).toString()].map(
      (amount) => [{ action: "refund", amount }, { amount: rules.amount }] as const
    ),
    ...["", "a\nb", "x".repeat(501), null].map((note) => [{ action: "refund", note }, { note: rules.note }] as const),
    [{ action: "refund", note: "\ud800" }, { note: expect.stringContaining("half a surrogate pair") }],
    [{ action: "accept", txHash: hash(1) }, { txHash: expect.stringContaining("which brought the money of exc_") }],
    [{ action: "accept", id: "exc_1" }, { id: "is not a field of this endpoint" }]
  ] as const)("a decision %j is refused, and the exception stays open", ([body, problems]) =>
    Effect.gen(function* () {
      const mine = yield* shop
      const { exception } = yield* late(mine, 1)
      const answer = yield* mine.resolve(exception.id, body)
      expect([answer.status, problemsIn(answer)]).toEqual([400, problems])
      expect((yield* mine.list("?status=open")).body.data).toEqual([exception])
    })
  )

  test("no one sees or decides what belongs to another account or the other mode", function* () {
    const mine = yield* shop
    const { exception } = yield* late(mine, 1)
    const live = yield* mine.api.newKey("live", undefined, mine.account)
    for (const key of [(yield* shop).key, live]) {
      expect((yield* mine.list("", key)).body).toEqual({ data: [], cursor: null })
      expect((yield* mine.list(`?payment=${exception.payment}`, key)).body.data).toEqual([])
      const stolen = yield* mine.resolve(exception.id, { action: "refund" }, {}, key)
      expect([stolen.status, stolen.body.error.message]).toEqual([
        404,
        "There is no such exception in this account and mode: GET /v1/exceptions lists them."
      ])
    }
    for (const id of ["exc_none", "pay_1", "%ff"]) {
      expect((yield* mine.resolve(id, { action: "accept" })).status).toBe(404)
    }
    expect((yield* mine.list("?status=open")).body.data).toEqual([exception])
    expect(yield* audit(mine)).toEqual([])
  })

  test("a decision counts towards the quota: beyond it nothing is decided", function* () {
    const mine = yield* shop
    const { exception } = yield* late(mine, 1)
    yield* execute("UPDATE usage SET bytes = bytes + 1000000000 WHERE account_id = ?", [mine.account])
    const refused = yield* mine.resolve(exception.id, { action: "accept" })
    expect([refused.status, refused.body.error.code]).toEqual([507, "QUOTA_EXCEEDED"])
    expect((yield* mine.list("?status=open")).body.data).toEqual([exception])
  })

  /** A payment of 1,000 with 600 that wait for their confirmations. */
  const shopOfOpen = Effect.gen(function* () {
    const mine = yield* shop
    const { id } = yield* mine.payment(1)
    shops += 1
    yield* storeMoneyFor(id, "600", hash(1_000_000 + shops))
    const refund = (json: unknown, sent = {}) =>
      mine.api.call("POST", `/v1/payments/${id}/refunds`, { key: mine.key, json, ...sent })
    return { ...mine, id, refund }
  })

  test("a refund of a payment subtracts what goes back from what counts, and is read, listed, named and dropped", function* () {
    const { account, api, id, key, refund, show } = yield* shopOfOpen
    const sent = { amount: "200", to: payer, txHash: `0x${"AB".repeat(32)}`, reason: "ticket 7" }
    const { body, headers, status } = yield* refund(sent)
    expect([status, headers["location"]]).toEqual([201, `/v1/refunds/${body.id}`])
    expect(body).toEqual({
      ...{ id: expect.stringMatching(/^ref_/), payment: id, status: "noted", chain: "base", currency: "USDC" },
      ...{ ...sent, txHash: sent.txHash.toLowerCase() },
      ...{ createdAt: expect.stringMatching(/Z$/), changedAt: expect.stringMatching(/Z$/) }
    })
    expect(yield* show(id)).toMatchObject({ status: "detecting", amountReceived: "400", amountRemaining: "600" })
    expect((yield* refund(sent)).body).toEqual(body)
    expect((yield* audit({ account }))[0]).toMatchObject({
      act: "payments refunded",
      detail: { amount: "200", to: payer.toLowerCase(), tx: body.txHash, note: "ticket 7", refund: body.id }
    })
    const unnamed = (yield* refund({ amount: "100" })).body
    const call = (method: string, path: string, json?: unknown) => api.call(method, `/v1/refunds${path}`, { key, json })
    expect((yield* call("GET", `/${body.id}`)).body).toEqual(body)
    const ids = (found: { readonly body: { readonly data: ReadonlyArray<{ readonly id: string }> } }) =>
      found.body.data.map((one) => one.id)
    expect(ids(yield* call("GET", ""))).toEqual([unnamed.id, body.id])
    expect(ids(yield* call("GET", "?status=final"))).toEqual([])
    const first = yield* call("GET", `?payment=${id}&limit=1`)
    expect(ids(yield* call("GET", `?payment=${id}&limit=1&cursor=${first.body.cursor}`))).toEqual([body.id])
    const named = yield* call("PATCH", `/${unnamed.id}`, { txHash: hash(3) })
    expect([named.status, named.body]).toMatchObject([200, { id: unnamed.id, status: "noted", txHash: hash(3) }])
    const dropped = yield* call("DELETE", `/${unnamed.id}`)
    expect([dropped.status, dropped.body.status]).toEqual([200, "failed"])
    expect((yield* show(id)).amountReceived).toBe("400")
    const late = yield* call("PATCH", `/${unnamed.id}`, { txHash: hash(4) })
    const why = `${unnamed.id} is failed, and its transaction stays as it is: record a new refund`
    expect([late.status, late.body.error]).toMatchObject([409, { code: "REFUND_SETTLED", message: why }])
    for (const [method, json] of [
      ["GET", undefined],
      ["PATCH", { txHash: hash(3) }],
      ["DELETE", undefined]
    ] as const) {
      const strange = yield* api.call(method, `/v1/refunds/${body.id}`, { key: (yield* shop).key, json })
      expect([strange.status, method]).toEqual([404, method])
    }
  })

  test("a refund of a payment repeats its response to an Idempotency-Key, and is recorded once", function* () {
    const { id, refund, show } = yield* shopOfOpen
    const sent = { headers: { "idempotency-key": "refund" } }
    const first = yield* refund({ amount: "100" }, sent)
    const again = yield* refund({ amount: "100" }, sent)
    expect([again.status, again.text, again.headers["idempotent-replayed"]]).toEqual([201, first.text, "true"])
    expect((yield* show(id)).amountReceived).toBe("500")
  })

  test("a refund of a payment refuses more than is left, and what is missing or unknown", function* () {
    const { id, refund } = yield* shopOfOpen
    const tooMuch = yield* refund({ amount: "601" })
    expect([tooMuch.status, problemsIn(tooMuch)]).toEqual([
      400,
      { amount: `must be at most 0.0006 USDC (600 in base units), which is what is left of USDC on base for ${id}` }
    ])
    const one = { amount: "1" }
    for (const json of [
      {},
      { amount: 5 },
      { amount: "0" },
      { ...one, txHash: "0x1" },
      { ...one, to: "me" },
      { ...one, all: true }
    ]) {
      expect((yield* refund(json)).status, JSON.stringify(json)).toBe(400)
    }
    const elsewhere = yield* refund({ ...one, chain: "polygon" })
    expect([elsewhere.status, elsewhere.body.error.code]).toEqual([409, "NOTHING_TO_REFUND"])
    expect(elsewhere.body.error.message).toBe(`No USDC on polygon of ${id} can be sent back: USDC on base came`)
    yield* refund({ amount: "100", txHash: hash(2) })
    const other = yield* refund({ amount: "200", txHash: hash(2) })
    expect([other.status, other.body.error.code]).toEqual([409, "EXCEPTION_RESOLVED"])
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1 WHERE id = ?", [id])
    expect((yield* refund({ amount: "500" })).status).toBe(201)
    const none = yield* refund(one)
    expect([none.status, none.body.error.code]).toEqual([409, "NOTHING_TO_REFUND"])
  })

  test("a refund of a payment is for its own account and mode", function* () {
    const { account, api, refund } = yield* shopOfOpen
    for (const key of [yield* api.newKey("live", undefined, account), (yield* shop).key]) {
      expect((yield* refund({ amount: "1" }, { key })).status).toBe(404)
    }
  })
})
