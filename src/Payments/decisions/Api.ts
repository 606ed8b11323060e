import { Schema } from "effect"
import { endpointsFor, keyedGroup } from "../../Auth/Api.ts"
import { BaseUnits } from "../../Domain/Amount.ts"
import { withStatus } from "../../Domain/ApiError.ts"
import { ChainName } from "../../Domain/Chain.ts"
import { ExceptionObject, notePattern, PublicExceptionKind } from "../../Domain/Exception.ts"
import { RefundObject, RefundStatus } from "../../Domain/Refund.ts"
import { alternatives, maybe, must, text } from "../../lib/annotations.ts"
import { choiceParameter, cursorParameter, idParameter, limitParameter, pageSchema } from "../../lib/parameters.ts"
import { plainAddress, transactionHash } from "../Api.ts"

const Status = Schema.Literal("open", "resolved")
const Action = Schema.Literal("accept", "refund")

/** The query of `GET /v1/exceptions`. */
export const ListExceptionsQuery = Schema.Struct({
  status: choiceParameter(Status, "Only those that are to be decided, or only those that are closed"),
  kind: choiceParameter(PublicExceptionKind, "Only those of this kind"),
  chain: choiceParameter(ChainName, "Only those of money on this chain"),
  payment: idParameter("Only those of this payment", "pay"),
  limit: limitParameter("Exceptions"),
  cursor: cursorParameter
})

const amountOf = (about: string) =>
  must("be a string of digits in the smallest unit of what came, without sign or leading zero", BaseUnits, {
    about,
    log: "shown"
  })

const Note = must(
  "be a string of 1 to 500 characters, without control characters",
  Schema.String.pipe(Schema.pattern(notePattern)),
  {
    about: "Kept with it, and shown to everybody who sees it",
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
  txHash: maybe(
    transactionHash(
      "With `refund` the transaction that sends the money back, which is looked up on the chain. With `accept` the transaction that paid, where the exception has none: the chain must have it, with its confirmations"
    )
  ),
  amount: maybe(amountOf("With `refund`: how much goes back; the rest stays open")),
  note: maybe(Note)
}).annotations({ identifier: "ResolveException", description: "A decision. Unknown fields are refused." })

/** The input of `POST /v1/payments/:id/refunds`. */
export const RefundBody = Schema.Struct({
  amount: amountOf(
    "How much goes back: what is open first, then what counts for the payment, and never more than is left"
  ),
  currency: maybe(
    must("be a currency that came for the payment", Schema.String.pipe(Schema.maxLength(64)), {
      about: "Which of the money that came; the payment's own currency if absent",
      // Any text: it may be a private key.
      log: "hidden"
    })
  ),
  chain: maybe(
    must(`be ${alternatives(ChainName.literals)}`, ChainName, {
      about: "On which chain the money came; the payment's if absent",
      log: "hidden"
    })
  ),
  to: maybe(
    plainAddress("Who gets it. Without `txHash`, the operator's `tilld sweep plan --refund` can send it there")
  ),
  txHash: maybe(
    transactionHash("The transaction that sends it, which is looked up on the chain; it can be named later")
  ),
  reason: maybe(Note)
}).annotations({ identifier: "RefundPayment", description: "What goes back. Unknown fields are refused." })

/** The input of `PATCH /v1/refunds/:id`. */
export const NameRefundBody = Schema.Struct({
  txHash: transactionHash("The transaction that sends it, of a refund without one, or whose one is not found")
}).annotations({ identifier: "NameRefund", description: "Which transaction a refund is. Unknown fields are refused." })

/** The query of `GET /v1/refunds`. */
export const ListRefundsQuery = Schema.Struct({
  payment: idParameter("Only those of this payment", "pay"),
  status: choiceParameter(RefundStatus, "Only those in this state"),
  limit: limitParameter("Refunds"),
  cursor: cursorParameter
})

export const RefundPage = pageSchema("RefundPage", "refunds", RefundObject)
export const ExceptionPage = pageSchema("ExceptionPage", "exceptions", ExceptionObject)

const { del, get, patch, post } = endpointsFor("exceptions:read", "exceptions:write")

const decisionErrors = [
  "NOT_FOUND",
  "EXCEPTION_RESOLVED",
  "NOTHING_TO_REFUND",
  "MONEY_NOT_CONFIRMED",
  "QUOTA_EXCEEDED"
] as const

const Path = Schema.Struct({ id: text("Identifier of the exception: `exc_…`.") })

export const ExceptionsApi = keyedGroup("exceptions")
  .add(get("list", "/v1/exceptions", "INVALID_CURSOR").setUrlParams(ListExceptionsQuery).addSuccess(ExceptionPage))
  .add(get("get", "/v1/exceptions/:id", "NOT_FOUND").setPath(Path).addSuccess(ExceptionObject))
  .add(
    post("resolve", "/v1/exceptions/:id/resolve", ...decisionErrors, "REFUND_UNDER_WAY", "TRANSACTION_NOT_PROVEN")
      .setPath(Path)
      .setPayload(ResolveBody)
      .addSuccess(ExceptionObject)
  )

const RefundPath = Schema.Struct({ id: text("Identifier of the refund: `ref_…`.") })

export const RefundsApi = keyedGroup("refunds")
  .add(
    post("create", "/v1/payments/:id/refunds", ...decisionErrors)
      .setPath(Schema.Struct({ id: text("Identifier of the payment: `pay_…`.") }))
      .setPayload(RefundBody)
      .addSuccess(withStatus(201, RefundObject))
  )
  .add(get("list", "/v1/refunds", "INVALID_CURSOR").setUrlParams(ListRefundsQuery).addSuccess(RefundPage))
  .add(get("get", "/v1/refunds/:id", "NOT_FOUND").setPath(RefundPath).addSuccess(RefundObject))
  .add(
    patch("name", "/v1/refunds/:id", "NOT_FOUND", "REFUND_SETTLED")
      .setPath(RefundPath)
      .setPayload(NameRefundBody)
      .addSuccess(RefundObject)
  )
  .add(
    del("drop", "/v1/refunds/:id", "NOT_FOUND", "REFUND_SETTLED", "REFUND_UNDER_WAY")
      .setPath(RefundPath)
      .addSuccess(RefundObject)
  )
