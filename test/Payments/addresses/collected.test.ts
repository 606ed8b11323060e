import { expect } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type ChainHealth, Chains } from "../../../src/Chains.ts"
import { type Network, networkKey } from "../../../src/Domain/Chain.ts"
import type { PaymentId } from "../../../src/Domain/Ids.ts"
import { readChain } from "../../../src/Payments/addresses/addressOperations.ts"
import * as CollectedRepo from "../../../src/Payments/addresses/CollectedRepo.ts"
import * as ReceivedRepo from "../../../src/Payments/addresses/CollectedRepo.ts"
import { Reader, Tx } from "../../../src/Sql.ts"
import { storeLateMoney } from "../../lib/exceptions.ts"
import { scopedTest } from "../../lib/scopedTest.ts"
import { execute, inTransaction, rows, storeAccount, tempStore } from "../../lib/store.ts"

const test = scopedTest(tempStore)
const network = { chain: "base", mode: "test" } as const
const hash = (n: number) => `0x${n.toString(16).padStart(64, "0")}`
const addressOf = (n: number) => `0x${`${n}`.repeat(40)}`

/** Ended payments of a wallet in the order of their numbers, and what came to them: 10 base units of coin each. */
const storePayments = (
  all: ReadonlyArray<{ readonly canonical?: boolean; readonly chain?: string; readonly mode?: string }>
) =>
  Effect.gen(function* () {
    yield* storeAccount
    yield* execute("INSERT INTO wallets (fingerprint, next_index, account_number) VALUES ('w', 9, 3)")
    for (const [i, { canonical = true, chain = "base", mode = "test" }] of all.entries()) {
      const n = i + 1
      yield* execute(
        `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
           wallet_index, status, created_at, expires_at, metadata, ended_at)
         VALUES (?, ?, 'default', ?, ?, '10', 'ETH', ?, ?, 'w', ?, 'expired', 0, 1, '{}', 1)`,
        [`pay_${n}`, `${n}`, mode, `ref-${n}`, chain, addressOf(n), n]
      )
      yield* execute(
        `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
           amount, payment_id, canonical, corroborated, seen_at)
         SELECT chain, mode, '0x110', address, 'tx:0', 110, 1, ?, currency, '10', id, ?, 1, 1 FROM payments WHERE id = ?`,
        [hash(n), canonical ? 1 : 0, `pay_${n}`]
      )
    }
  })

const receivedBehind = (after: number, window: number) =>
  Effect.flatMap(Reader, (reader) => ReceivedRepo.received(reader, network, undefined, after, window))

const storeTransfer = (n: number, over: Partial<Record<"chain" | "mode" | "currency", string>> = {}) => {
  const { chain, currency, mode } = { ...network, currency: "ETH", ...over }
  return execute(
    `INSERT INTO collected (chain, mode, tx_hash, place, address, receiver, currency, amount, block_time, noted_at)
     VALUES (?, ?, ?, 0, ?, ?, ?, '4', 4, 5)`,
    [chain, mode, hash(100 + n), addressOf(n), addressOf(9), currency]
  )
}

test("received money is that of canonical blocks of the chain, and only an open exception keeps it", function* () {
  yield* storePayments([{}, { canonical: false }, { chain: "polygon" }, { mode: "live" }, {}, {}])
  yield* storeLateMoney("pay_1", 1)
  yield* storeLateMoney("pay_5", 2)
  yield* execute("UPDATE exceptions SET closed_at = 1, outcome = 'accepted' WHERE payment_id = 'pay_1'")
  const { next, rows } = yield* receivedBehind(0, 100)
  expect(next).toBeUndefined()
  expect(rows.map(({ held, isOpen, payment }) => [payment, isOpen, JSON.parse(held)])).toEqual([
    ["pay_1", 0, []],
    ["pay_5", 0, [{ currency: "ETH", amount: "700", is: "exception" }]],
    ["pay_6", 0, []]
  ])
  expect(rows[0]).toMatchObject({ account: "default", address: addressOf(1), walletAccount: 3, index: 1 })
})

test("received money is read page by page, each payment once", function* () {
  yield* storePayments([{}, {}, {}])
  const pages: Array<ReadonlyArray<string>> = []
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: { readonly next: number | undefined; readonly rows: ReadonlyArray<{ readonly payment: string }> } =
      yield* receivedBehind(after, 1)
    pages.push(page.rows.map(({ payment }) => payment))
    after = page.next
  }
  expect(pages).toEqual([["pay_1"], ["pay_2"], ["pay_3"]])
})

test("what was moved away counts for its address, currency, chain and mode only", function* () {
  yield* storePayments([{}, {}])
  yield* storeTransfer(1)
  yield* storeTransfer(2, { mode: "live" })
  yield* storeTransfer(2, { chain: "polygon" })
  const { rows } = yield* Effect.flatMap(Reader, (reader) => ReceivedRepo.moved(reader, 0, 100))
  const row = { account: "default", mode: "test", currency: "ETH" }
  expect(rows.toSorted((a, b) => Number(b.received - a.received) || Number(b.collected - a.collected))).toEqual([
    { ...row, chain: "base", received: 10n, collected: 4n },
    { ...row, chain: "base", received: 10n, collected: 0n },
    { ...row, chain: "polygon", received: 0n, collected: 4n }
  ])
})

test("what counts at an exception's address is what two providers have seen, less exceptions and what was moved", function* () {
  yield* storePayments([{}])
  yield* execute("UPDATE payments SET currency = 'USDC'")
  const came = (position: string, amount: string, corroborated: number) =>
    execute(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
       amount, payment_id, canonical, corroborated, seen_at)
     SELECT chain, mode, '0x110', address, ?, 110, 1, ?, 'USDC', ?, id, 1, ?, 1 FROM payments`,
      [position, hash(7), amount, corroborated]
    )
  yield* came("log:1", "5000", 1)
  yield* came("log:2", "30000", 0)
  yield* storeLateMoney("pay_1", 1)
  yield* storeTransfer(1, { currency: "USDC" })
  const place = { payment: "pay_1" as PaymentId, address: addressOf(1), ...network, currency: "" }
  const keeping = Effect.flatMap(Reader, (reader) => ReceivedRepo.keptBeside(reader, [place])).pipe(
    Effect.map((kept) => (currency: string) => kept({ ...place, currency }))
  )
  const of = yield* keeping
  expect([of("USDC"), of("DAI"), of("ETH")]).toEqual([4996n, 0n, 0n])
  // What a plan pays: begun, or noted for a receiver. What was sent by hand is there, or was moved away.
  for (const [i, [status, receiver, tx]] of [
    ["begun", addressOf(8), null],
    ["noted", addressOf(8), null],
    ["noted", null, null],
    ["seen", addressOf(8), hash(9)]
  ].entries()) {
    yield* execute(
      `INSERT INTO refunds (id, payment_id, mode, address, chain, currency, amount, receiver, status, tx_hash, created_at,
         changed_at, block_time) VALUES (?, 'pay_1', 'test', ?, 'base', 'USDC', '100', ?, ?, ?, 0, 0, 0)`,
      [`ref_${i}`, addressOf(1), receiver ?? null, `${status}`, tx ?? null]
    )
    yield* execute("INSERT INTO refund_parts VALUES (?, 0, NULL, ?, NULL, '100', 1)", [`ref_${i}`, hash(7)])
  }
  expect((yield* keeping)("USDC")).toBe(4796n)
})

const noteTransfers = (transfers: ReadonlyArray<CollectedRepo.CollectedTransfer>, now: number, on: Network = network) =>
  inTransaction(Effect.flatMap(Tx, (tx) => CollectedRepo.add(tx, on, transfers, { now, prices: undefined })))

test("a transfer is noted once, by its transaction and its place in the plan", function* () {
  const transfer = (place: number, amount: string) => ({
    ...{ hash: hash(1), place, address: addressOf(place), to: addressOf(9), currency: "USDC", amount, at: 7 }
  })
  expect(yield* noteTransfers([transfer(1, "5"), transfer(2, "6")], 10)).toBe(2)
  expect(yield* noteTransfers([transfer(2, "60"), transfer(3, "7")], 20)).toBe(1)
  expect(yield* rows("SELECT place, amount, address, receiver FROM collected ORDER BY place")).toEqual(
    [5, 6, 7].map((amount, i) => ({
      ...{ place: i + 1, amount: `${amount}`, address: addressOf(i + 1), receiver: addressOf(9) }
    }))
  )
  expect(yield* Effect.flatMap(Reader, CollectedRepo.newest)).toBe(20)
})

test("gas is of the account and the payment that its transaction was for, where that is one, and is noted once", function* () {
  yield* storePayments([{}, {}, {}])
  yield* execute("INSERT INTO accounts VALUES ('other', 'Other', 0, NULL, NULL, NULL)")
  yield* execute("UPDATE payments SET account_id = 'other' WHERE id = 'pay_3'")
  const [sponsor, batcher] = [addressOf(20), addressOf(21)]
  const carried = (batch: number, ...of: ReadonlyArray<number>) =>
    noteTransfers(
      of.map((n) => ({
        ...{
          hash: hash(batch),
          place: n,
          address: addressOf(n),
          to: addressOf(9),
          currency: "USDC",
          amount: "5",
          at: 7
        }
      })),
      10
    )
  yield* carried(31, 1, 2)
  yield* carried(32, 2, 3)
  const paid = (n: number, payer: string, to: string, wei = `${n}`) => ({ hash: hash(n), payer, to, wei, at: 7 })
  const noteGas = (...all: ReadonlyArray<CollectedRepo.PaidGas>) =>
    inTransaction(Effect.flatMap(Tx, (tx) => CollectedRepo.addGas(tx, network, all, { now: 7_000, prices: undefined })))
  yield* noteGas(
    paid(1, sponsor, addressOf(3)),
    paid(2, addressOf(1), addressOf(9)),
    paid(31, sponsor, batcher),
    paid(32, sponsor, batcher),
    paid(33, sponsor, batcher)
  )
  yield* noteGas(paid(1, sponsor, addressOf(3), "100"))
  expect(yield* rows("SELECT amount, account_id, payment_id FROM gas ORDER BY CAST(amount AS INTEGER)")).toEqual([
    { amount: "1", account_id: "other", payment_id: "pay_3" },
    { amount: "2", account_id: "default", payment_id: "pay_1" },
    { amount: "31", account_id: "default", payment_id: null },
    { amount: "32", account_id: null, payment_id: null },
    { amount: "33", account_id: null, payment_id: null }
  ])
})

const caller = { actor: { via: "socket", who: "root" }, isOperator: true } as const

test("an address is known to have sent so many transactions, each once, on its network", function* () {
  const places = [1, 2].map((n) => ({ ...network, address: addressOf(n) }))
  const listed = Effect.gen(function* () {
    const noted = yield* CollectedRepo.transactionsOf(yield* Reader, places)
    return places.map(noted)
  })
  let place = 0
  const add = (nonce: number | undefined, of = 1, over: Partial<Network> = {}) => {
    place += 1
    const transfer = { address: addressOf(of), to: addressOf(9), currency: "ETH", amount: "1", at: 7, nonce }
    return noteTransfers([{ hash: hash(place), place, ...transfer }], 10, { ...network, ...over })
  }
  expect(yield* listed).toEqual([0, 0])
  // Of authorizations, which other addresses carry, and of other networks.
  yield* add(undefined)
  yield* add(0, 1, { chain: "polygon" })
  yield* add(0, 1, { mode: "live" })
  expect(yield* listed).toEqual([0, 0])
  yield* add(0)
  yield* add(0, 2)
  yield* add(0)
  expect(yield* listed).toEqual([1, 1])
  // One between is not known: it may be what sent a refund.
  yield* add(2)
  expect(yield* listed).toEqual([2, 1])
})

test("a chain is looked at and was read up to a block in its own mode only", function* () {
  const well = { ready: true, providers: [] }
  const health: ReadonlyArray<ChainHealth> = [
    { ...well, chain: "base", mode: "live", head: 300 },
    { ...well, chain: "polygon", mode: "test", head: 400 },
    { ...well, chain: "base", mode: "test", head: 200 },
    { ...well, chain: "ethereum", mode: "live", head: 500 },
    { ...well, chain: "ethereum", mode: "test" }
  ]
  const looked: Array<string> = []
  const chains = Layer.mock(Chains, {
    health: Effect.succeed(health),
    look: (one) => Effect.sync(() => void looked.push(networkKey(one))),
    exclusively: () => () => Effect.never,
    wake: () => undefined,
    viewed: () => undefined,
    behind: () => undefined
  })
  const read = (chain: "base" | "ethereum") =>
    Effect.provide(
      readChain.run({ chain, mode: "test" }, caller, () => undefined),
      chains
    )
  expect([yield* read("base"), yield* read("ethereum")]).toEqual([{ head: 200 }, {}])
  expect(looked).toEqual(["base.test", "ethereum.test"])
})
