import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Schema } from "effect"
import { ApiKeyAuth, RequiredPermission } from "../Auth/Api.ts"
import { errorBody } from "../Domain/ApiError.ts"
import { ChainName } from "../Domain/Chain.ts"
import { LedgerKind, LedgerRow } from "../Domain/LedgerRow.ts"
import { alternatives, must } from "../lib/annotations.ts"
import { cursorParameter, limitParameter, momentParameter } from "../lib/parameters.ts"

const optional = { exact: true } as const

/** The query of `GET /v1/ledger`. */
export const ListLedgerQuery = Schema.Struct({
  kind: Schema.optionalWith(
    must(`be ${alternatives(LedgerKind.literals)}`, LedgerKind, { about: "Only rows of this kind" }),
    optional
  ),
  chain: Schema.optionalWith(
    must(`be ${alternatives(ChainName.literals)}`, ChainName, { about: "Only money on this chain" }),
    optional
  ),
  currency: Schema.optionalWith(
    must("be given once", Schema.String, { about: "Only money of this currency" }),
    optional
  ),
  payment: Schema.optionalWith(
    must("be an id: pay_ and letters, digits, _ or -", Schema.String, { about: "Only rows of this payment" }),
    optional
  ),
  from: momentParameter("Only money of blocks of this time or later"),
  until: momentParameter("Only money of blocks before this time"),
  limit: limitParameter("Rows"),
  cursor: cursorParameter
})

export const LedgerPage = Schema.Struct({
  data: Schema.Array(LedgerRow).annotations({ description: "Newest first." }),
  cursor: Schema.NullOr(Schema.String).annotations({
    description: "Asks for the next page, also where filters left few rows of this one; null at the end."
  })
}).annotations({ identifier: "LedgerPage", description: "A page of the ledger." })

export const LedgerApi = HttpApiGroup.make("ledger")
  .add(
    HttpApiEndpoint.get("list", "/v1/ledger")
      .setUrlParams(ListLedgerQuery)
      .addSuccess(LedgerPage)
      .addError(errorBody("INVALID_CURSOR"))
      .annotate(RequiredPermission, "payments:read")
  )
  .addError(errorBody("VALIDATION_ERROR"))
  .addError(errorBody("RATE_LIMITED"))
  .middleware(ApiKeyAuth)
