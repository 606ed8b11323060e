/** Which deliveries a form or the filters of the list select, and its fields. */
import type { Either } from "effect"
import type { DeliveryFilter } from "../../Domain/DeliveryObject.ts"
import type { EndpointId, PaymentId } from "../../Domain/Ids.ts"
import type * as LogRepo from "../../Webhooks/queue/DeliveryLogRepo.ts"
import { checked, ifGiven, readMoment, readOneOf, textOf } from "../fields.ts"
import type { Viewer } from "../Viewer.ts"

/** `failing`: an attempt has failed, and none has succeeded yet. */
export const statuses = ["failing", "failed", "pending", "delivered", "cancelled"] as const

export const readFilters = (given: URLSearchParams) =>
  checked({
    status: ifGiven(readOneOf(statuses))(textOf(given, "status")),
    from: ifGiven(readMoment)(textOf(given, "from")),
    until: ifGiven(readMoment)(textOf(given, "until"))
  })

/** The filters that are read; ids are taken as they are. */
export type ReadFilters = Either.Either.Right<ReturnType<typeof readFilters>>

/** What a form of filters selects, of one status. Ids that nothing has select nothing. */
export const selectionOf = (
  { owner }: Viewer,
  given: URLSearchParams,
  { from = 0, until = Number.MAX_SAFE_INTEGER }: ReadFilters,
  status: DeliveryFilter
): LogRepo.Selection => ({
  owner,
  endpoint: (textOf(given, "endpoint") || undefined) as EndpointId | undefined,
  payment: (textOf(given, "payment") || undefined) as PaymentId | undefined,
  status,
  since: from,
  until
})

/** The fields of a form that select deliveries, for links and for the names of cursors. */
export const filterFields = (given: URLSearchParams) =>
  Object.fromEntries(["status", "endpoint", "payment", "from", "until"].map((name) => [name, textOf(given, name)]))
