import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { DatedTransfer } from "../../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import type { Permission } from "../../../src/Domain/ApiKey.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import { problemsIn, TestApi, testApp } from "../../lib/api.ts"
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
let mined = 0

interface Created {
  readonly id: string
  readonly address: string
}

layer(app, { excludeTestServices: true })("exceptions over HTTP", (it) => {
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
    const resolve = (id: string, json: unknown, headers = {}) =>
      api.call("POST", `/v1/exceptions/${id}/resolve`, { key, json, headers })
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

  it.effect("an exception has what a refund or a collection needs; the payment and its list show the same", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const { exception, payment, txHash } = yield* late(mine, 1)
      const [row] = yield* rows<{ wallet_index: number }>("SELECT wallet_index FROM payments WHERE id = ?", [
        payment.id
      ])
      expect(exception).toEqual({
        id: expect.stringMatching(/^exc_[A-Za-z0-9_-]{22}$/),
        payment: payment.id,
        kind: "late",
        chain: "base",
        currency: "USDC",
        amount: "700",
        from: payer,
        txHash,
        address: payment.address,
        derivationIndex: row?.wallet_index,
        path: `m/44'/60'/1'/0/${row?.wallet_index}`,
        detectedAt: expect.stringMatching(/Z$/)
      })
      expect((yield* mine.show(payment.id)).exceptions).toEqual([exception])
      const listed = yield* mine.api.call("GET", "/v1/payments", { key: mine.key })
      expect(listed.body.data).toMatchObject([{ id: payment.id, exceptions: [exception] }])
    })
  )

  it.effect("the filters select by state, kind, chain and payment, and pages follow their cursor, newest first", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const [one, two] = [yield* mine.payment(1), yield* mine.payment(2, "polygon")]
      yield* expire(one)
      yield* expire(two)
      yield* pay(one, 1n)
      yield* pay(two, 2n, {}, polygon)
      yield* pay(one, 3n, { currency: "USDC.e" })
      yield* pay(two, 4n, {}, base)
      yield* pay(one, 5n)
      const found = (query: string) =>
        Effect.map(mine.list(query), ({ body }) => body.data.map(({ amount }: { amount: string }) => Number(amount)))
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
      yield* pay(one, 6n)
      const second = yield* mine.list(`?limit=2&status=open&cursor=${first.body.cursor}`)
      const amounts = [first, second].flatMap(({ body }) => body.data.map(({ amount }: { amount: string }) => amount))
      expect([amounts, second.body.cursor]).toEqual([["4", "3", "2", "1"], null])
      const foreign = yield* mine.list(`?limit=2&cursor=${first.body.cursor}`)
      expect([foreign.status, foreign.body.error.code]).toEqual([400, "INVALID_CURSOR"])
    })
  )

  it.effect.each([
    ["status=dead", "status", "must be open or resolved"],
    [
      "kind=paid_again",
      "kind",
      "must be overpaid, underpaid, late, wrong_token, wrong_chain, unattributed, found_late or reorged"
    ],
    ["kind=unknown_payment", "kind", expect.stringContaining("must be overpaid")],
    ["chain=solana", "chain", "must be ethereum, polygon, arbitrum, optimism or base"],
    ["limit=0", "limit", "must be an integer from 1 to 100"],
    ["page=2", "page", "is not a query parameter of this endpoint"]
  ] as const)("the list refuses %s", ([query, path, rule]) =>
    Effect.gen(function* () {
      const answer = yield* (yield* shop).list(`?${query}`)
      expect([answer.status, problemsIn(answer)]).toEqual([400, { [path]: rule }])
    })
  )

  it.effect("accept: the payment is confirmed by that money, and the act is in the audit log", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const { exception, payment, txHash } = yield* late(mine, 1)
      const other = yield* pay(payment, 50n)
      const answer = yield* mine.resolve(exception.id, { action: "accept", note: "fine by us" })
      expect([answer.status, answer.body]).toEqual([
        200,
        { ...exception, resolution: "accepted", resolvedAt: expect.stringMatching(/Z$/), note: "fine by us" }
      ])
      const shown = yield* mine.show(payment.id)
      expect(shown).toMatchObject({ status: "confirmed", txHash })
      // Open ones come first.
      expect(shown.exceptions).toMatchObject([{ txHash: other }, answer.body])
      const audit = yield* rows<{ act: string; detail: string }>(
        "SELECT act, detail FROM audit WHERE account_id = ? ORDER BY sequence",
        [mine.account]
      )
      expect(audit.map(({ act, detail }) => [act, JSON.parse(detail)])).toEqual([
        ["payments accept", { id: exception.id, note: "fine by us" }]
      ])
    })
  )

  it.effect("refund: the transaction is recorded, as a part or as a whole", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const { exception, payment } = yield* late(mine, 1)
      const upper = `0x${"AB".repeat(32)}`
      const part = yield* mine.resolve(exception.id, { action: "refund", amount: "200", txHash: upper })
      const refundedAt = expect.stringMatching(/Z$/)
      const first = { amount: "200", txHash: upper.toLowerCase(), refundedAt }
      expect(part.body).toEqual({
        ...exception,
        amount: "500",
        amountRefunded: "200",
        refunds: [first],
        resolutionTxHash: upper.toLowerCase()
      })
      const whole = yield* mine.resolve(exception.id, { action: "refund", txHash: hash(1) })
      expect(whole.body).toEqual({
        ...exception,
        refunds: [first, { amount: "500", txHash: hash(1), refundedAt }],
        resolution: "refunded",
        resolvedAt: expect.stringMatching(/Z$/),
        resolutionTxHash: hash(1)
      })
      expect((yield* mine.show(payment.id)).status).toBe("expired")
    })
  )

  it.effect("the audit log shows what was sent back, and which decision is a repetition or adds a transaction", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const { exception } = yield* late(mine, 1)
      const { id } = exception
      for (const json of [
        { action: "refund", amount: "200" },
        { action: "refund", amount: "200", txHash: hash(1) },
        { action: "refund", txHash: hash(2) },
        { action: "refund", txHash: hash(2) }
      ]) {
        expect((yield* mine.resolve(id, json)).status).toBe(200)
      }
      const other = yield* late(mine, 2)
      for (const json of [{ action: "accept" }, { action: "accept" }]) yield* mine.resolve(other.exception.id, json)
      const audit = yield* rows<{ detail: string }>("SELECT detail FROM audit WHERE account_id = ? ORDER BY sequence", [
        mine.account
      ])
      expect(audit.map(({ detail }) => JSON.parse(detail))).toEqual([
        { id, amount: "200", closed: [`${id}: 200 USDC`] },
        { id, amount: "200", tx: hash(1), completed: true },
        { id, tx: hash(2), closed: [`${id}: 500 USDC`] },
        { id, tx: hash(2), repeated: true },
        { id: other.exception.id },
        { id: other.exception.id, repeated: true }
      ])
    })
  )

  it.effect("refund: a part counts once, however often and in whatever order its transaction is named", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const { exception } = yield* late(mine, 1)
      const part = (amount: string, txHash: string) => mine.resolve(exception.id, { action: "refund", amount, txHash })
      yield* part("200", hash(1))
      const second = yield* part("100", hash(2))
      expect((yield* part("200", hash(1))).body).toEqual(second.body)
      expect(second.body).toMatchObject({ amount: "400", amountRefunded: "300" })
      const other = yield* part("50", hash(1))
      expect([other.status, other.body.error.code]).toEqual([409, "EXCEPTION_RESOLVED"])
      expect(other.body.error.message).toContain("is noted already, as a refund of exc_")

      const accepted = yield* mine.resolve(exception.id, { action: "accept" })
      expect(accepted.body).toMatchObject({ resolution: "accepted", amount: "400", amountRefunded: "300" })
      expect(accepted.body.refunds).toHaveLength(2)
      expect(accepted.body).not.toHaveProperty("resolutionTxHash")
    })
  )

  it.effect(
    "the same decision again gets the same response, with an idempotency key and without; another one a 409",
    () =>
      Effect.gen(function* () {
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
        const events = yield* rows("SELECT 1 FROM events WHERE kind = 'payment.exception' AND payment_id = ?", [
          exception.payment
        ])
        expect(events).toHaveLength(2)
      })
  )

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
    [{ action: "refund", amount: "701" }, { amount: expect.stringContaining("must be at most 700") }],
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

  it.effect("money without a transaction needs one that is proven", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const payment = yield* mine.payment(1)
      yield* expire(payment)
      yield* pay(payment, 5n, { position: "unattributed", txHash: undefined, currency: "ETH" })
      const [exception] = (yield* mine.list()).body.data
      expect(exception).not.toHaveProperty("txHash")
      const without = yield* mine.resolve(exception.id, { action: "accept" })
      expect([without.status, problemsIn(without)]).toEqual([
        400,
        { txHash: `must be given: the transaction that paid ${payment.id} is not known` }
      ])
      // This chain has no reachable node.
      const unproven = yield* mine.resolve(exception.id, { action: "accept", txHash: hash(1) })
      expect([unproven.status, unproven.body.error.code]).toEqual([422, "TRANSACTION_NOT_PROVEN"])
      expect(unproven.body.error.message).toContain("could not be asked")
      expect((yield* mine.list("?status=open")).body.data).toHaveLength(1)
    })
  )

  it.effect("money that a reorg removed cannot be sent back", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const payment = yield* mine.payment(1)
      yield* execute(
        `UPDATE payments SET status = 'failed', failure_reason = 'reorged', ended_at = 9, confirmed_at = 8, tx_hash = ?
         WHERE id = ?`,
        [hash(77), payment.id]
      )
      yield* pay(payment, 5n)
      const [exception] = (yield* mine.list("?kind=reorged")).body.data
      const refused = yield* mine.resolve(exception.id, { action: "refund" })
      expect([refused.status, refused.body.error.code]).toEqual([409, "NOTHING_TO_REFUND"])
      const accepted = yield* mine.resolve(exception.id, { action: "accept" })
      expect(accepted.body).toMatchObject({ kind: "reorged", resolution: "accepted" })
      expect((yield* mine.show(payment.id)).status).toBe("failed")
    })
  )

  it.effect("no one sees or decides what belongs to another account or the other mode", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const { exception } = yield* late(mine, 1)
      const live = yield* mine.api.newKey("live", undefined, mine.account)
      for (const key of [(yield* shop).key, live]) {
        expect((yield* mine.list("", key)).body).toEqual({ data: [], cursor: null })
        expect((yield* mine.list(`?payment=${exception.payment}`, key)).body.data).toEqual([])
        const stolen = yield* mine.api.call("POST", `/v1/exceptions/${exception.id}/resolve`, {
          key,
          json: { action: "refund" }
        })
        expect([stolen.status, stolen.body.error.message]).toEqual([
          404,
          "There is no such exception in this account and mode: GET /v1/exceptions lists them."
        ])
      }
      for (const id of ["exc_none", "pay_1", "%ff"]) {
        expect((yield* mine.resolve(id, { action: "accept" })).status).toBe(404)
      }
      expect((yield* mine.list("?status=open")).body.data).toEqual([exception])
      expect(yield* rows("SELECT 1 FROM audit WHERE account_id = ?", [mine.account])).toEqual([])
    })
  )

  it.effect("reading and deciding have a permission each", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const { exception } = yield* late(mine, 1)
      const withOnly = (permission: Permission) => mine.api.newKey("test", [permission], mine.account)
      const [reader, writer] = [yield* withOnly("exceptions:read"), yield* withOnly("exceptions:write")]
      const resolve = (key: string) =>
        mine.api.call("POST", `/v1/exceptions/${exception.id}/resolve`, { key, json: { action: "refund" } })
      expect((yield* mine.list("", writer)).body.error.message).toContain("exceptions:read")
      expect((yield* resolve(reader)).body.error.message).toContain("exceptions:write")
      expect([(yield* mine.list("", reader)).status, (yield* resolve(writer)).status]).toEqual([200, 200])
    })
  )

  it.effect("a decision counts towards the quota: beyond it nothing is decided", () =>
    Effect.gen(function* () {
      const mine = yield* shop
      const { exception } = yield* late(mine, 1)
      yield* execute("UPDATE usage SET bytes = bytes + 1000000000 WHERE account_id = ?", [mine.account])
      const refused = yield* mine.resolve(exception.id, { action: "accept" })
      expect([refused.status, refused.body.error.code]).toEqual([507, "QUOTA_EXCEEDED"])
      expect((yield* mine.list("?status=open")).body.data).toEqual([exception])
    })
  )
})
