import { QuotaExceeded } from "../Domain/Account.ts"
import { bodyTooLarge, type ErrorCode, errorObject } from "../Domain/ApiError.ts"
import { expiryRule } from "../Domain/Payment.ts"
import { examplePayment } from "./examples.ts"

interface Meaning {
  /** When the server returns it, and what to do. */
  readonly when: string
  /** An example of the message. */
  readonly message: string
  readonly details?: unknown
}

/** The documentation of every error code. */
export const meanings: Readonly<Record<ErrorCode, Meaning>> = {
  VALIDATION_ERROR: {
    when: "A field or query parameter is missing, wrong or unknown. `details` lists every problem at once.",
    message: "The request is not valid: details lists every problem.",
    details: [{ path: "expiresIn", message: `must ${expiryRule}` }]
  },
  INVALID_JSON: {
    when: "The body is not JSON in UTF-8, or is nested deeper than 64 levels.",
    message: "The body is not valid JSON."
  },
  INVALID_CURSOR: {
    when: "The cursor does not belong to this list, or was issued for other filters.",
    message: "The cursor is not one of this list: take it from the page before, with the same filters."
  },
  BAD_REQUEST: {
    when: "This is not a well-formed HTTP request, or it has no `Host`, or it is a `CONNECT`, or its connection had more than 32 unanswered requests, or its body came in hundreds of small pieces.",
    message: "The Host header is missing."
  },
  UNAUTHORIZED: {
    when: "The API key is missing, unknown, expired or revoked. Repeated failures from one address are answered late.",
    message: "The API key is missing: send it in the X-API-Key header."
  },
  FORBIDDEN: {
    when: "The key lacks the permission that the message names, or may not be used from the client's address.",
    message:
      "The API key lacks the permission payments:read: ask the operator for a key that has it (tilld keys create --permissions)."
  },
  NOT_FOUND: {
    when: "The object does not exist for this key: it belongs to another account or the other mode, or the identifier is malformed.",
    message: "There is no such payment in this account and mode: GET /v1/payments lists them."
  },
  METHOD_NOT_ALLOWED: {
    when: "The path does not support the method. `Allow` lists those that it supports.",
    message: "This path takes GET, HEAD, POST."
  },
  REQUEST_TIMEOUT: {
    when: "Headers took longer than 10 seconds to arrive, or the whole request longer than 15.",
    message: "The request did not arrive in time."
  },
  DUPLICATE_MERCHANT_REF: {
    when: "A payment has this `merchantRef` already; a reference can never be used again. `details.paymentId` is that payment.",
    message: "A payment with this merchantRef exists: details has its id.",
    details: { paymentId: examplePayment.id }
  },
  PAYMENT_NOT_PENDING: {
    when: "The payment has ended, and cannot be cancelled. `details` has its status, and the message says what to do.",
    message:
      "Only a payment that is pending or detecting can be cancelled, and this one is confirmed: it is paid; send the money back.",
    details: { status: "confirmed" }
  },
  ROTATION_UNDER_WAY: {
    when: "The secret before the present one still signs. Wait for the end of its overlap, or send `overlapSeconds` 0.",
    message:
      "The secret before the last one still signs until 2026-02-01T12:00:00.000Z: wait for that, or send overlapSeconds 0, which ends both at once."
  },
  ENDPOINT_DELETED: {
    when: "The endpoint that the delivery went to was deleted. Name another one with `to`.",
    message: "The endpoint of this delivery was deleted: name another one with `to`."
  },
  EXCEPTION_RESOLVED: {
    when: "The exception is closed, and not by this decision, or the refund is noted for another amount. A decision stays as it is; `GET /v1/exceptions?status=open` lists what is left to decide.",
    message:
      "exc_Pq7cR4wLz9Xh1mDs6tVkBg was accepted at 2026-01-31T15:00:00.000Z, and a decision stays as it is: the open exceptions are what is left to decide"
  },
  NOTHING_TO_REFUND: {
    when: "The exception is `reorged`: a reorg took the money, so that there is none to send back. Accept it, to do without that money. Or no money counts for the payment: the message says where it is.",
    message:
      "There is no money of exc_Pq7cR4wLz9Xh1mDs6tVkBg to send back, since a reorg took it: accept it, to do without that money"
  },
  MONEY_NOT_CONFIRMED: {
    when: "The money has fewer confirmations than its chain asks for, so that a reorg may still take it, or no second provider has it. The message says which. Send the decision again later.",
    message:
      "the money of exc_Pq7cR4wLz9Xh1mDs6tVkBg has 1 of the 10 confirmations that base.live asks for, and a reorg may still take it: decide once it has them"
  },
  REFUND_UNDER_WAY: {
    when: "The money is being sent back: signed transfers were begun. The broadcast of the operator accounts for them.",
    message:
      "exc_Pq7cR4wLz9Xh1mDs6tVkBg is being sent back as ref_Zk3vQ8nTb5Yw2rLx7cJmHd, by signed transfers: run tilld sweep broadcast to its end"
  },
  REFUND_SETTLED: {
    when: "The refund cannot be changed so: the chain has its transaction, or it was dropped.",
    message: "ref_Zk3vQ8nTb5Yw2rLx7cJmHd is final: the chain has it"
  },
  IDEMPOTENCY_KEY_IN_USE: {
    when: "The first request with this `Idempotency-Key` is still in progress. Repeat it after `Retry-After`.",
    message: "A request with this Idempotency-Key is being worked on: ask again in a moment."
  },
  QUOTE_EXPIRED: {
    when: "The quote's `validUntil` has passed. Create a new quote.",
    message: "The quote was valid until 2026-01-31T12:00:30.000Z: create a new quote."
  },
  QUOTE_ALREADY_USED: {
    when: "Another payment uses the quote. Create a new quote.",
    message: "A payment uses this quote: create a new quote."
  },
  TOO_MANY_ENDPOINTS: {
    when: "The account has 50 webhook endpoints in this mode, the maximum. Delete one first.",
    message: "There are 50 endpoints, as many as an account may have in a mode: delete one first."
  },
  PAYLOAD_TOO_LARGE: {
    when: bodyTooLarge.message,
    message: bodyTooLarge.message
  },
  UNSUPPORTED_MEDIA_TYPE: {
    when: "The body is not sent as `application/json` in UTF-8, or is compressed.",
    message: "The body must be JSON in UTF-8: send Content-Type: application/json."
  },
  IDEMPOTENCY_KEY_REUSED: {
    when: "This `Idempotency-Key` was used with another body in the last 24 hours. Use a new one.",
    message: "This Idempotency-Key was used with another body: use a new key for a new request."
  },
  QUOTE_NOT_FOUND: {
    when: "There is no such quote in the key's account and mode.",
    message:
      "There is no such quote in this account and mode: request one with POST /v1/quotes, and use its id at once."
  },
  QUOTE_MISMATCH: {
    when: "Chain, currency or amount differ from the quote. `details` has the accepted values: of two amounts the smaller is what the quote gives after fees, and the larger what it gives before them.",
    message: "The payment does not ask for what the quote prices: details has what would do.",
    details: { chain: "base", accepted: [{ currency: "USDC", amounts: ["54610500", "54890000"] }] }
  },
  AMOUNT_TOO_SMALL: {
    when: "The fees are as much as the amount, or more. Use a larger amount.",
    message: "The fees are as much as the amount or more: ask for a larger one.",
    details: { gross: "0.000550", fees: { network: "0.004117", service: "0.000003" } }
  },
  TRANSACTION_NOT_PROVEN: {
    when: "The transaction that `txHash` names cannot be what paid: the chain does not have it, it failed, it paid another payment, it lacks confirmations, or no provider could be asked. The message says which; try again later in the last two cases.",
    message:
      "The transaction 0xc18285c32520a01691427edb4da9a71dae416ff4ebec33007508bd88802ce591 has 3 of the 10 confirmations that base.live asks for: try again later"
  },
  RATE_LIMITED: {
    when: "The key, or the keys of its account and mode together, have used up their requests of the minute or hour: the message says which. Wait for `Retry-After`.",
    message: "This key may make 100 requests a minute: wait as long as Retry-After says.",
    details: { window: "minute", limit: 100 }
  },
  TOO_MANY_STREAMS: {
    when: "The account has 20 event streams open, the maximum. Close one, or wait until the server detects an abandoned one.",
    message: "The account has 20 streams of events open, as many as there may be: close one first."
  },
  HEADERS_TOO_LARGE: {
    when: "The request's headers are larger than 16 KiB, are more than 100, or its trailers are too large.",
    message: "The request's headers are too large."
  },
  INTERNAL: {
    when: "An error of this server. The operator finds it in the log by the request id.",
    message: "Something went wrong here, not with the request: the operator finds it in the log by this request id."
  },
  SHUTTING_DOWN: {
    when: "The server is being stopped or restarted. Nothing was done; repeat the request after `Retry-After`.",
    message: "The server is shutting down: try again in a moment."
  },
  TOO_MANY_CONNECTIONS: {
    when: "The connection limit is reached, and every connection has a request in progress; or the client sends too many large bodies at once. Nothing was done.",
    message: "Too many connections are open, each with a request that is worked on: try again in a moment."
  },
  OVERLOADED: {
    when: "Requests without a valid key have used their share of the server's time, and this one has waited for five seconds. Nothing was done; repeat the request after `Retry-After`. A request with a valid key does not wait for them.",
    message: "Too many requests without a valid key are waiting: try again as soon as Retry-After says."
  },
  STORE_UNAVAILABLE: {
    when: "The database cannot be written or read, for example because a disk is full. Nothing was changed; repeat the request after `Retry-After`.",
    message: "The store cannot be used at the moment, and nothing was changed: try again soon."
  },
  RATE_UNAVAILABLE: {
    when: "There is no fresh price, or its sources differ too much. Repeat the request after `Retry-After`.",
    message: "There is no fresh price of ETH at the moment."
  },
  WALLET_NOT_CONFIGURED: {
    when: "The operator has not configured a wallet for payments of this mode.",
    message: "There is no wallet to receive test payments with: the operator has to configure one."
  },
  QUOTA_EXCEEDED: {
    when: "The account has reached its storage quota, or its open payments may yet store several times as much. They and their webhooks continue. Ask the operator for a higher quota, or delete webhook endpoints that you do not need.",
    message: new QuotaExceeded({ quota: 1_000_000_000, by: "rows" }).message
  }
}

/** An example of the response body. */
export const exampleError = (code: ErrorCode) => {
  const { details, message } = meanings[code]
  const requestId = "req_q3LmJ8kPzQ1v6ySFhS9X0w"
  return errorObject({ code, message, details }, requestId)
}
