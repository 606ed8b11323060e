import { Schema } from "effect"
import { endpointsFor, keyedGroup } from "../Auth/Api.ts"
import { ChainName } from "../Domain/Chain.ts"
import { LedgerKind, LedgerRow } from "../Domain/LedgerRow.ts"
import { must } from "../lib/annotations.ts"
import {
  choiceParameter,
  cursorParameter,
  idParameter,
  limitParameter,
  momentParameter,
  pageSchema
} from "../lib/parameters.ts"

const optional = { exact: true } as const

/** The query of `GET /v1/ledger`. */
export const ListLedgerQuery = Schema.Struct({
  kind: choiceParameter(LedgerKind, "Only rows of this kind"),
  chain: choiceParameter(ChainName, "Only money on this chain"),
  currency: Schema.optionalWith(
    must("be given once", Schema.String, { about: "Only money of this currency" }),
    optional
  ),
  payment: idParameter("Only rows of this payment", "pay"),
  from: momentParameter("Only money of blocks of this time or later"),
  until: momentParameter("Only money of blocks before this time"),
  limit: limitParameter("Rows"),
  cursor: cursorParameter
})

export const LedgerPage = pageSchema(
  "LedgerPage",
  "the ledger",
  LedgerRow,
  "Asks for the next page, also where filters left few rows of this one; null at the end."
)

const { get } = endpointsFor("payments:read", "payments:write")

export const LedgerApi = keyedGroup("ledger").add(
  get("list", "/v1/ledger", "INVALID_CURSOR").setUrlParams(ListLedgerQuery).addSuccess(LedgerPage)
)
