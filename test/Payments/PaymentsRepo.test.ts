import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Owner } from "../../src/Domain/Account.ts"
import { AccountId, newPaymentId } from "../../src/Domain/Ids.ts"
import * as ListRepo from "../../src/Payments/PaymentListRepo.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { someNewPayment } from "../lib/payments.ts"
import { tempStore } from "../lib/store.ts"

const owners: ReadonlyArray<Owner> = [
  { account: AccountId.make("default"), mode: "live" },
  { account: AccountId.make("default"), mode: "test" },
  { account: AccountId.make("shop"), mode: "test" },
  { account: AccountId.make("shop"), mode: "live" }
]

it.scoped("a payment of an account and mode is not found by another account or mode, by the same reference", () =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run(
          "INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Default', 0), ('shop', 'Shop', 0)"
        )
        yield* tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 10)")
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
  ).pipe(Effect.provide(tempStore))
)
