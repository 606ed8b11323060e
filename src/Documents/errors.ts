import { bodyTooLarge, type ErrorCode, errorObject } from "../Domain/ApiError.ts"
import { expiryRule } from "../Domain/Payment.ts"
import { exampleInvoice, examplePayment } from "./examples.ts"

/** When the server returns each code, and what to do. */
export const meanings: Readonly<Record<ErrorCode, string>> = {
  VALIDATION_ERROR: "A field or query parameter is missing, wrong or unknown. `details` lists every problem at once.",
  INVALID_JSON: "The body is not JSON in UTF-8, or is nested deeper than 64 levels.",
  INVALID_CURSOR: "The cursor does not belong to this list, or was issued for other filters.",
  BAD_REQUEST:
    "This is not a well-formed HTTP request, or it has no `Host`, or it is a `CONNECT`, or its connection had more than 32 unanswered requests, or its body came in hundreds of small pieces.",
  UNAUTHORIZED:
    "The API key is missing, unknown, expired or revoked. Repeated failures from one address are answered late.",
  FORBIDDEN: "The key lacks the permission that the message names, or may not be used from the client's address.",
  NOT_FOUND:
    "The object does not exist for this key: it belongs to another account or the other mode, or the identifier is malformed.",
  METHOD_NOT_ALLOWED: "The path does not support the method. `Allow` lists those that it supports.",
  REQUEST_TIMEOUT: "Headers took longer than 10 seconds to arrive, or the whole request longer than 15.",
  DUPLICATE_MERCHANT_REF:
    "A payment has this `merchantRef` already; a reference can never be used again. `details.paymentId` is that payment.",
  DUPLICATE_INVOICE_REF:
    "An invoice has this `merchantRef` already. `details.invoiceId` is that invoice. The account may let invoices repeat a reference: `tilld accounts shop --invoice-refs repeat`.",
  INVOICE_NOT_OPEN:
    "The invoice has ended, or money was seen for it. `details` has its status, and the message says what to do.",
  CHOICE_UNAVAILABLE:
    "The price cannot be converted to what was chosen: no fresh price is known. Nothing was made. `details.available` is what can be chosen now.",
  PAYMENT_NOT_PENDING:
    "The payment has ended, and cannot be cancelled. `details` has its status, and the message says what to do.",
  ROTATION_UNDER_WAY:
    "The secret before the present one still signs. Wait for the end of its overlap, or send `overlapSeconds` 0.",
  ENDPOINT_DELETED: "The endpoint that the delivery went to was deleted. Name another one with `to`.",
  EXCEPTION_RESOLVED:
    "The exception is closed, and not by this decision, or the refund is noted for another amount. A decision stays as it is; `GET /v1/exceptions?status=open` lists what is left to decide.",
  NOTHING_TO_REFUND:
    "The exception is `reorged`: a reorg took the money, so that there is none to send back. Accept it, to do without that money. Or none of what was meant has come, or is left: the message says what there is.",
  MONEY_NOT_CONFIRMED:
    "The money has fewer confirmations than its chain asks for, so that a reorg may still take it, or no second provider has it. The message says which. Send the decision again later.",
  REFUND_UNDER_WAY:
    "The money is being sent back: signed transfers were begun. The broadcast of the operator accounts for them.",
  REFUND_SETTLED: "The refund cannot be changed so: the chain has its transaction, or it was dropped.",
  IDEMPOTENCY_KEY_IN_USE:
    "The first request with this `Idempotency-Key` is still in progress. Repeat it after `Retry-After`.",
  QUOTE_EXPIRED: "The quote's `validUntil` has passed. Create a new quote.",
  QUOTE_ALREADY_USED: "Another payment uses the quote. Create a new quote.",
  TOO_MANY_ENDPOINTS: "The account has 50 webhook endpoints in this mode, the maximum. Delete one first.",
  PAYLOAD_TOO_LARGE: bodyTooLarge.message,
  UNSUPPORTED_MEDIA_TYPE: "The body is not sent as `application/json` in UTF-8, or is compressed.",
  IDEMPOTENCY_KEY_REUSED: "This `Idempotency-Key` was used with another body in the last 24 hours. Use a new one.",
  QUOTE_NOT_FOUND: "There is no such quote in the key's account and mode.",
  QUOTE_MISMATCH:
    "Chain, currency or amount differ from the quote. `details` has the accepted values: of two amounts the smaller is what the quote gives after fees, and the larger what it gives before them.",
  AMOUNT_TOO_SMALL: "The fees are as much as the amount, or more. Use a larger amount.",
  TRANSACTION_NOT_PROVEN:
    "The transaction that `txHash` names cannot be what paid: the chain does not have it, it failed, it paid another payment, it lacks confirmations, or no provider could be asked. The message says which; try again later in the last two cases.",
  RATE_LIMITED:
    "The key, or the keys of its account and mode together, have used up their requests of the minute or hour: the message says which. Wait for `Retry-After`.",
  TOO_MANY_STREAMS:
    "The account has 20 event streams open, the maximum. Close one, or wait until the server detects an abandoned one.",
  HEADERS_TOO_LARGE: "The request's headers are larger than 16 KiB, are more than 100, or its trailers are too large.",
  INTERNAL: "An error of this server. The operator finds it in the log by the request id.",
  SHUTTING_DOWN: "The server is being stopped or restarted. Nothing was done; repeat the request after `Retry-After`.",
  TOO_MANY_CONNECTIONS:
    "The connection limit is reached, and every connection has a request in progress; or the client sends too many large bodies at once. Nothing was done.",
  OVERLOADED:
    "Hundreds of requests without a valid key are waiting for their turn. Nothing was done; repeat the request after `Retry-After`. A request with a valid key does not wait for them.",
  STORE_UNAVAILABLE:
    "The database cannot be written or read, for example because a disk is full. Nothing was changed; repeat the request after `Retry-After`.",
  RATE_UNAVAILABLE: "There is no fresh price, or its sources differ too much. Repeat the request after `Retry-After`.",
  WALLET_NOT_CONFIGURED: "The operator has not configured a wallet for payments of this mode.",
  QUOTA_EXCEEDED:
    "The account has reached its storage quota, or its open payments may yet store several times as much. They and their webhooks continue. Ask the operator for a higher quota, or delete webhook endpoints that you do not need."
}

/** Examples of `details`. */
const exampleDetails: { readonly [Code in ErrorCode]?: unknown } = {
  VALIDATION_ERROR: [{ path: "expiresIn", message: `must ${expiryRule}` }],
  DUPLICATE_MERCHANT_REF: { paymentId: examplePayment.id },
  DUPLICATE_INVOICE_REF: { invoiceId: exampleInvoice.id },
  INVOICE_NOT_OPEN: { status: "paid" },
  CHOICE_UNAVAILABLE: { available: ["USDC-base", "USDC-polygon"] },
  PAYMENT_NOT_PENDING: { status: "confirmed" },
  QUOTE_MISMATCH: { chain: "base", accepted: [{ currency: "USDC", amounts: ["54610500", "54890000"] }] },
  AMOUNT_TOO_SMALL: { gross: "0.000550", fees: { network: "0.004117", service: "0.000003" } },
  RATE_LIMITED: { window: "minute", limit: 100 }
}

/** An example of the response body. The message that a server sends says more of the request. */
export const exampleError = (code: ErrorCode) => {
  const message = meanings[code].replaceAll("`", "")
  return errorObject({ code, message, details: exampleDetails[code] }, "req_q3LmJ8kPzQ1v6ySFhS9X0w")
}
