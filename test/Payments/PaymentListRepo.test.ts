import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { getAddress } from "viem"
import { AccountId, newPaymentId } from "../../src/Domain/Ids.ts"
import type { NewPayment } from "../../src/Domain/Payment.ts"
import { meantBy } from "../../src/Payments/PaymentListRepo.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { Reader, Tx } from "../../src/Sql.ts"
import { someNewPayment } from "../lib/payments.ts"
import { execute, inTransaction, tempStore } from "../lib/store.ts"

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
    Effect.map(meantBy(reader, text, 10), (payments) => payments.map(({ address }) => Number(address.at(-1))))
  )

const shop = AccountId.make("shop")

it.scoped("a payment is found by its id, its address in any case, its transaction or its reference", () =>
  Effect.gen(function* () {
    const [, payment] = yield* store({}, {}, {})
    yield* receive(1)
    const { address = "", id = "" } = payment ?? {}
    for (const text of [
      id,
      address,
      address.toLowerCase(),
      hash,
      hash.toUpperCase().replace("X", "x"),
      "order 1",
      " order\u00a01 "
    ]) {
      expect(yield* found(text), text).toEqual([1])
    }
    for (const text of ["", "order", "pay_none", `0x${"b".repeat(64)}`, addressOf(9), "%", "order 1x"]) {
      expect(yield* found(text), text).toEqual([])
    }
  }).pipe(Effect.provide(tempStore))
)

it.scoped(
  "several are found by a reference of two accounts or modes, or by a transaction that paid them, newest first",
  () =>
    Effect.gen(function* () {
      const merchantRef = "order 1"
      yield* store({ merchantRef }, { merchantRef, account: shop }, { merchantRef, mode: "live" }, {})
      for (const n of [0, 3]) yield* receive(n)
      expect(yield* found("order 1")).toEqual([2, 1, 0])
      expect(yield* found(hash)).toEqual([3, 0])
      expect((yield* Effect.flatMap(Reader, (reader) => meantBy(reader, "order 1", 2))).length).toBe(2)
    }).pipe(Effect.provide(tempStore))
)

it.scoped("a reference that looks like another payment's id, address or transaction never stands for that", () =>
  Effect.gen(function* () {
    const id = newPaymentId(7)
    const refs = [id, addressOf(0), hash, newPaymentId(8)].map((merchantRef) => ({ merchantRef, account: shop }))
    yield* store({ id }, ...refs)
    yield* receive(0)
    for (const text of [id, addressOf(0), hash]) expect(yield* found(text), text).toEqual([0])
    // Where nothing has that id, it is a reference like any other.
    expect(yield* found(refs[3]?.merchantRef ?? "")).toEqual([4])
  }).pipe(Effect.provide(tempStore))
)
