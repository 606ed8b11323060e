import { Effect } from "effect"
import type { PaymentId } from "../../src/Domain/Ids.ts"
import { Settlement } from "../../src/Payments/Settlement.ts"
import { alice, watchedPayment } from "./around.ts"
import { paymentById } from "./world.ts"

/** What a payment has become, why it failed, and what it received. */
export const stateOf = (id: PaymentId) =>
  Effect.map(paymentById(id), (payment) =>
    [payment?.status, payment?.failureReason, payment?.amountReceived].filter((part) => part !== undefined).join(" ")
  )

/** A payment of 5 USDC that is watched, in a world in which payments end. */
export const watchedUsdc = Effect.gen(function* () {
  const { expire } = yield* Settlement
  yield* Effect.forkScoped(expire)
  return yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
})
