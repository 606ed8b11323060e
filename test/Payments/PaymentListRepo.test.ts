import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { getAddress } from "viem"
import type { Owner } from "../../src/Domain/Account.ts"
import { AccountId, newPaymentId } from "../../src/Domain/Ids.ts"
import type { NewPayment } from "../../src/Domain/Payment.ts"
import * as ListRepo from "../../src/Payments/PaymentListRepo.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { Reader, Tx } from "../../src/Sql.ts"
import { someNewPayment } from "../lib/payments.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, tempStore } from "../lib/store.ts"

const test = scopedTest(tempStore)
const addressOf = (n: number) => getAddress(`0x${String(n).repeat(40)}`)
const hash = `0x${"a".repeat(64)}`

/** Payments of two accounts in both modes, by number; what is not given is the number's. */
const store = (...payments: ReadonlyArray<Partial<NewPayment>>) =>
  inTransaction(
    Effect.gen(function* () {
      const tx = yield* Tx
      yield* tx.run("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Default', 0), ('shop', 'Shop', 0)")
      yield* tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 10)")
      return yield* Effect.forEach(
        payments,
        (over, index) => {
          const own = {
            id: newPaymentId(index),
            address: addressOf(index),
            merchantRef: `order ${index}`,
            createdAt: index
          }
          return Repo.insert(someNewPayment({ ...own, ...over }), { wallet: "w", index })
        },
        { concurrency: 1 }
      )
    })
  )

const receive = (n: number) =>
  execute(
    `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       payment_id, canonical, corroborated, seen_at)
     SELECT 'base', 'test', '0xb', lower(address), 'log:0', 101, 1, ?, 'USDC', '5', id, 1, 1, 0 FROM payments
     WHERE address = ?`,
    [hash, addressOf(n)]
  )

const found = (text: string) =>
  Effect.flatMap(Reader, (reader) =>
    Effect.map(ListRepo.meantBy(reader, text, 10), (payments) => payments.map(({ address }) => Number(address.at(-1))))
  )

const shop = AccountId.make("shop")

test("a payment is found by its id, its address in any case, its transaction or its reference", function* () {
  const [, payment] = yield* store({}, {}, {})
  yield* receive(1)
  const { address = "", id = "" } = payment ?? {}
  const upper = hash.toUpperCase().replace("X", "x")
  for (const text of [id, address, address.toLowerCase(), hash, upper, "order 1", " order\u00a01 "]) {
    expect(yield* found(text), text).toEqual([1])
  }
  for (const text of ["", "order", "pay_none", `0x${"b".repeat(64)}`, addressOf(9), "%", "order 1x"]) {
    expect(yield* found(text), text).toEqual([])
  }
})

test("several are found by a reference of two accounts or modes, or by a transaction that paid them, newest first", function* () {
  const merchantRef = "order 1"
  yield* store({ merchantRef }, { merchantRef, account: shop }, { merchantRef, mode: "live" }, {})
  for (const n of [0, 3]) yield* receive(n)
  expect(yield* found("order 1")).toEqual([2, 1, 0])
  expect(yield* found(hash)).toEqual([3, 0])
  expect((yield* Effect.flatMap(Reader, (reader) => ListRepo.meantBy(reader, "order 1", 2))).length).toBe(2)
})

test("a reference that looks like another payment's id, address or transaction never stands for that", function* () {
  const id = newPaymentId(7)
  const refs = [id, addressOf(0), hash, newPaymentId(8)].map((merchantRef) => ({ merchantRef, account: shop }))
  yield* store({ id }, ...refs)
  yield* receive(0)
  for (const text of [id, addressOf(0), hash]) expect(yield* found(text), text).toEqual([0])
  // Where nothing has that id, it is a reference like any other.
  expect(yield* found(refs[3]?.merchantRef ?? "")).toEqual([4])
})

const owners: ReadonlyArray<Owner> = [
  { account: AccountId.make("default"), mode: "live" },
  { account: AccountId.make("default"), mode: "test" },
  { account: AccountId.make("shop"), mode: "test" },
  { account: AccountId.make("shop"), mode: "live" }
]

test("a payment of an account and mode is not found by another account or mode, by the same reference", function* () {
  yield* store()
  yield* inTransaction(
    Effect.gen(function* () {
      const tx = yield* Tx
      const payments = owners.map((owner, n) =>
        someNewPayment({ ...owner, id: newPaymentId(n), address: `0x${n}`, merchantRef: "order" })
      )
      for (const [index, payment] of payments.entries()) yield* Repo.insert(payment, { wallet: "w", index })
      const again = someNewPayment({ ...owners[3], id: newPaymentId(9), address: "0x9", merchantRef: "order" })
      expect(yield* Repo.insert(again, { wallet: "w", index: 9 })).toBeUndefined()
      for (const [n, owner] of owners.entries()) {
        const own = payments[n]?.id
        expect(yield* Repo.idByMerchantRef(tx, owner, "order")).toBe(own)
        expect((yield* ListRepo.list(tx, owner, { limit: 9 })).map(({ id }) => id)).toEqual([own])
        const visible = yield* Effect.filter(payments, ({ id }) =>
          Effect.map(Repo.byOwner(tx, owner, id), (found) => found !== undefined)
        )
        expect(visible.map(({ id }) => id)).toEqual([own])
        const token = payments[n]?.checkoutToken ?? ""
        expect((yield* Repo.byCheckoutToken(tx, token))?.id).toBe(own)
        expect(yield* Repo.byCheckoutToken(tx, own ?? "")).toBeUndefined()
      }
      expect(yield* Repo.idByMerchantRef(tx, owners[0] ?? expect.unreachable(), "other")).toBeUndefined()
    })
  )
})
