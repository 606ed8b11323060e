import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Schema } from "effect"
import { ApiKeyAuth, RequiredPermission } from "../../Auth/Api.ts"
import { BaseUnits } from "../../Domain/Amount.ts"
import { errorBody, idempotencyErrors } from "../../Domain/ApiError.ts"
import { ChainName } from "../../Domain/Chain.ts"
import { AccountedPayment } from "../../Domain/Event.ts"
import { notePattern, PublicExceptionKind } from "../../Domain/Exception.ts"
import { ExceptionObject } from "../../Domain/ExceptionObject.ts"
import { alternatives, must, text } from "../../lib/annotations.ts"
import { cursorParameter, limitParameter } from "../../lib/parameters.ts"

const optional = { exact: true } as const

const Status = Schema.Literal("open", "resolved")
const Action = Schema.Literal("accept", "refund")

/** The query of `GET /v1/exceptions`. */
export const ListExceptionsQuery = Schema.Struct({
  status: Schema.optionalWith(
    must(`be ${alternatives(Status.literals)}`, Status, {
      about: "Only those that are to be decided, or only those that are closed"
    }),
    optional
  ),
  kind: Schema.optionalWith(
    must(`be ${alternatives(PublicExceptionKind.literals)}`, PublicExceptionKind, { about: "Only those of this kind" }),
    optional
  ),
  chain: Schema.optionalWith(
    must(`be ${alternatives(ChainName.literals)}`, ChainName, { about: "Only those of money on this chain" }),
    optional
  ),
  payment: Schema.optionalWith(
    must("be an id: pay_ and letters, digits, _ or -", Schema.String, { about: "Only those of this payment" }),
    optional
  ),
  limit: limitParameter("Exceptions"),
  cursor: cursorParameter
})

const TxHash = must(
  "be a transaction's hash: 0x and 64 hexadecimal digits",
  Schema.String.pipe(Schema.pattern(/^0x[0-9a-fA-F]{64}$/)),
  {
    about:
      "With `refund` the transaction that sent the money back, which is noted as you name it. With `accept` the transaction that paid, where the exception has none: the chain must have it, with its confirmations",
    // It has the form of a private key.
    log: "hidden"
  }
)

const Amount = must(
  "be a string of digits in the smallest unit of what came, without sign or leading zero",
  BaseUnits,
  {
    about: "With `refund`: how much was sent back; the rest stays open",
    log: "shown"
  }
)

const Note = must(
  "be a string of 1 to 500 characters, without control characters",
  Schema.String.pipe(Schema.pattern(notePattern)),
  {
    about: "Kept with the decision, and shown to everybody who sees the exception",
    json: { pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]+$", minLength: 1, maxLength: 500 },
    log: "hidden"
  }
)

/** The input of `POST /v1/exceptions/:id/resolve`. */
export const ResolveBody = Schema.Struct({
  action: must(`be ${alternatives(Action.literals)}`, Action, {
    about: "What you have decided: to take the money, or to send it back, which you have done with your own wallet",
    log: "shown"
  }),
  txHash: Schema.optionalWith(TxHash, optional),
  amount: Schema.optionalWith(Amount, optional),
  note: Schema.optionalWith(Note, optional)
}).annotations({ identifier: "ResolveException", description: "A decision. Unknown fields are refused." })

/** The input of `POST /v1/payments/:id/refund`. */
export const RefundBody = Schema.Struct({
  amount: must(
    "be a string of digits in the smallest unit of the payment's token, without sign or leading zero",
    BaseUnits,
    {
      about: "How much was sent back, at most what counts for the payment. Required, since more may come at any time",
      log: "shown"
    }
  ),
  txHash: Schema.optionalWith(
    must(
      "be a transaction's hash: 0x and 64 hexadecimal digits",
      Schema.String.pipe(Schema.pattern(/^0x[0-9a-fA-F]{64}$/)),
      { about: "The transaction that sent the money back, which is noted as you name it", log: "hidden" }
    ),
    optional
  ),
  note: Schema.optionalWith(Note, optional)
}).annotations({ identifier: "RefundPayment", description: "What was sent back. Unknown fields are refused." })

export const ExceptionPage = Schema.Struct({
  data: Schema.Array(ExceptionObject).annotations({ description: "Newest first." }),
  cursor: Schema.NullOr(Schema.String).annotations({ description: "Asks for the next page; null at the end." })
}).annotations({ identifier: "ExceptionPage", description: "A page of exceptions." })

const Path = Schema.Struct({ id: text("Identifier of the exception: `exc_…`.") })

export const ExceptionsApi = HttpApiGroup.make("exceptions")
  .add(
    HttpApiEndpoint.get("list", "/v1/exceptions")
      .setUrlParams(ListExceptionsQuery)
      .addSuccess(ExceptionPage)
      .addError(errorBody("INVALID_CURSOR"))
      .annotate(RequiredPermission, "exceptions:read")
  )
  .add(
    HttpApiEndpoint.post("resolve", "/v1/exceptions/:id/resolve")
      .setPath(Path)
      .setPayload(ResolveBody)
      .addSuccess(ExceptionObject)
      .addError(errorBody("NOT_FOUND"))
      .addError(errorBody("EXCEPTION_RESOLVED"))
      .addError(errorBody("NOTHING_TO_REFUND"))
      .addError(errorBody("MONEY_NOT_CONFIRMED"))
      .addError(errorBody("TRANSACTION_NOT_PROVEN"))
      .addError(errorBody("QUOTA_EXCEEDED"))
      .addError(idempotencyErrors)
      .annotate(RequiredPermission, "exceptions:write")
  )
  .add(
    HttpApiEndpoint.post("refund", "/v1/payments/:id/refund")
      .setPath(Schema.Struct({ id: text("Identifier of the payment: `pay_…`.") }))
      .setPayload(RefundBody)
      .addSuccess(AccountedPayment)
      .addError(errorBody("NOT_FOUND"))
      .addError(errorBody("EXCEPTION_RESOLVED"))
      .addError(errorBody("NOTHING_TO_REFUND"))
      .addError(errorBody("MONEY_NOT_CONFIRMED"))
      .addError(errorBody("QUOTA_EXCEEDED"))
      .addError(idempotencyErrors)
      .annotate(RequiredPermission, "exceptions:write")
  )
  .addError(errorBody("VALIDATION_ERROR"))
  .addError(errorBody("RATE_LIMITED"))
  .middleware(ApiKeyAuth)
