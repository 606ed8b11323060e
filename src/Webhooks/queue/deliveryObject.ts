/** Stored deliveries as merchants and operators see them. */
import type { OperatorDelivery } from "../../Domain/DeliveryObject.ts"
import { iso } from "../../lib/moment.ts"
import type { LoggedAttempt, LoggedDelivery } from "./DeliveryLogRepo.ts"

export const attemptObject = ({
  bodyStart,
  endedAt,
  error,
  isRedelivery,
  number,
  startedAt,
  status
}: LoggedAttempt) => ({
  number,
  ...(isRedelivery ? { redelivery: true as const } : {}),
  startedAt: iso(startedAt),
  durationMillis: Math.max(0, endedAt - startedAt),
  ...(status === null ? {} : { status }),
  ...(error === null ? {} : { error }),
  ...(bodyStart === null ? {} : { bodyStart })
})

/** Without its attempts, but for the last one. */
export const deliveryObject = (delivery: LoggedDelivery) => {
  const { attempts, createdAt, endpoint, event, id, kind, made, merchantRef, nextAttemptAt, payment, status, url } =
    delivery
  const last = attempts.at(-1)
  return {
    ...{ id, event, kind, ...(payment.startsWith("inv_") ? { invoice: payment } : { payment }), merchantRef },
    ...(endpoint === null ? {} : { endpoint }),
    url,
    status,
    createdAt: iso(createdAt),
    ...(nextAttemptAt === null ? {} : { nextAttemptAt: iso(nextAttemptAt) }),
    attemptsMade: made,
    ...(last === undefined ? {} : { lastAttempt: attemptObject(last) })
  }
}

/** With its attempts, the addresses that were connected to, and whose it is. */
export const operatorDelivery = (delivery: LoggedDelivery): OperatorDelivery => ({
  account: delivery.account,
  mode: delivery.mode,
  ...deliveryObject(delivery),
  attempts: delivery.attempts.map((attempt) => ({
    ...attemptObject(attempt),
    ...(attempt.address === null ? {} : { address: attempt.address })
  }))
})
