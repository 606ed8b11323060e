import { HttpApiSchema } from "@effect/platform"
import { Data, Effect, Option, Schema, SchemaAST } from "effect"
import { idPattern, text } from "../lib/annotations.ts"
import type { QuotaExceeded } from "./Account.ts"
import { ChainName } from "./Chain.ts"
import { PaymentCurrency } from "./Currency.ts"
import { InvoiceStatus } from "./Invoice.ts"
import { PaymentStatus } from "./Payment.ts"

/** The body of a response with its HTTP status. A status given to `addSuccess` would drop the schema's identifier. */
export const withStatus = <A, I>(status: number, schema: Schema.Schema<A, I>): Schema.Schema<A, I> =>
  schema.annotations({
    identifier: Option.getOrThrow(SchemaAST.getIdentifierAnnotation(schema.ast)),
    ...HttpApiSchema.annotations({ status })
  })

const mark = ". Remedy: "

/** A message that names one remedy, apart from it. One with several, or none, is what is wrong as a whole. */
export const splitRemedy = (message: string): { readonly wrong: string; readonly remedy?: string } => {
  const [wrong, remedy, ...more] = message.split(mark)
  return wrong === undefined || remedy === undefined || more.length > 0 ? { wrong: message } : { wrong, remedy }
}

/** Every code that an error body can carry, and the HTTP status it comes with. */
export const statusOf = {
  VALIDATION_ERROR: 400,
  INVALID_JSON: 400,
  INVALID_CURSOR: 400,
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  DUPLICATE_MERCHANT_REF: 409,
  DUPLICATE_INVOICE_REF: 409,
  INVOICE_NOT_OPEN: 409,
  PAYMENT_NOT_PENDING: 409,
  IDEMPOTENCY_KEY_IN_USE: 409,
  ROTATION_UNDER_WAY: 409,
  QUOTE_EXPIRED: 409,
  QUOTE_ALREADY_USED: 409,
  TOO_MANY_ENDPOINTS: 409,
  ENDPOINT_DELETED: 409,
  EXCEPTION_RESOLVED: 409,
  NOTHING_TO_REFUND: 409,
  MONEY_NOT_CONFIRMED: 409,
  REFUND_UNDER_WAY: 409,
  REFUND_SETTLED: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  IDEMPOTENCY_KEY_REUSED: 422,
  QUOTE_NOT_FOUND: 422,
  QUOTE_MISMATCH: 422,
  AMOUNT_TOO_SMALL: 422,
  TRANSACTION_NOT_PROVEN: 422,
  RATE_LIMITED: 429,
  TOO_MANY_STREAMS: 429,
  HEADERS_TOO_LARGE: 431,
  INTERNAL: 500,
  SHUTTING_DOWN: 503,
  TOO_MANY_CONNECTIONS: 503,
  OVERLOADED: 503,
  STORE_UNAVAILABLE: 503,
  RATE_UNAVAILABLE: 503,
  CHOICE_UNAVAILABLE: 503,
  WALLET_NOT_CONFIGURED: 503,
  QUOTA_EXCEEDED: 507
} as const
export type ErrorCode = keyof typeof statusOf
export const errorCodes = Object.keys(statusOf) as ReadonlyArray<ErrorCode>

/** One thing that is wrong with a request. `path` names the field or parameter, such as `metadata.items[0]`. */
export interface FieldProblem {
  readonly path: string
  readonly message: string
}

/** A request's refusal, ready to be sent. `message` is for the merchant's developers: what was wrong and what to do. */
export class ApiError extends Data.TaggedError("ApiError")<{
  readonly code: ErrorCode
  readonly message: string
  readonly details?: unknown
  readonly headers?: Readonly<Record<string, string>>
}> {}

export const invalid = (problems: ReadonlyArray<FieldProblem>) =>
  new ApiError({
    code: "VALIDATION_ERROR",
    message: "The request is not valid: details lists every problem.",
    details: problems
  })

/** Most bytes of a request's body, and as text. */
export const mostBodyBytes = 64 * 1024
export const bodyLimit = `${mostBodyBytes / 1024} KiB`

export const bodyTooLarge = new ApiError({
  code: "PAYLOAD_TOO_LARGE",
  message: `The body is larger than ${bodyLimit}.`
})

export const quotaExceeded = ({ message }: QuotaExceeded) => new ApiError({ code: "QUOTA_EXCEEDED", message })

const whereFound = {
  payment: "its id begins with pay_, and GET /v1/payments?merchantRef= finds one by your reference",
  invoice: "its id begins with inv_, and GET /v1/invoices?merchantRef= finds one by your reference",
  exception: "GET /v1/exceptions lists them",
  refund: "GET /v1/refunds lists them",
  delivery: "GET /v1/deliveries lists them",
  "webhook endpoint": "GET /v1/webhooks lists them",
  quote: "POST /v1/quotes makes one"
} as const

export const notFound = (what: keyof typeof whereFound) =>
  new ApiError({
    code: "NOT_FOUND",
    message: `There is no such ${what} in this account and mode: ${whereFound[what]}.`
  })

/** What there is, or the 404 of its kind. */
export const mustFind = <A, E, R>(what: keyof typeof whereFound, found: Effect.Effect<A | undefined, E, R>) =>
  Effect.flatMap(found, (one) => (one === undefined ? notFound(what) : Effect.succeed(one)))

const decimal = text("A decimal in `toCurrency`.")

/** The schema of `details`, by the codes that have it. */
const details = {
  VALIDATION_ERROR: Schema.Array(
    Schema.Struct({
      path: text("The field or parameter, such as `metadata.items[0]`; empty for the body as a whole."),
      message: text("What is wrong with it.")
    })
  ).annotations({ description: "Every problem at once, at most 101." }),
  DUPLICATE_MERCHANT_REF: Schema.Struct({ paymentId: text("The payment that has the reference.", idPattern("pay")) }),
  DUPLICATE_INVOICE_REF: Schema.Struct({ invoiceId: text("The invoice that has the reference.", idPattern("inv")) }),
  INVOICE_NOT_OPEN: Schema.Struct({ status: InvoiceStatus.annotations({ description: "The status it has." }) }),
  CHOICE_UNAVAILABLE: Schema.Struct({
    available: Schema.Array(Schema.String).annotations({ description: "What can be chosen now." })
  }),
  PAYMENT_NOT_PENDING: Schema.Struct({ status: PaymentStatus.annotations({ description: "The status it has." }) }),
  QUOTE_MISMATCH: Schema.Struct({
    chain: ChainName,
    accepted: Schema.Array(Schema.Struct({ currency: PaymentCurrency, amounts: Schema.Array(Schema.String) }))
  }).annotations({ description: "What a payment by this quote may ask for; amounts in the smallest unit." }),
  AMOUNT_TOO_SMALL: Schema.Struct({
    gross: decimal,
    fees: Schema.Struct({ network: decimal, service: decimal })
  }).annotations({ description: "What the amount is worth before fees, and the fees." }),
  RATE_LIMITED: Schema.Struct({
    window: Schema.Literal("minute", "hour"),
    limit: Schema.Number.pipe(Schema.int({ jsonSchema: { type: "integer", minimum: 1 } }))
  }).annotations({ description: "The limit that was reached, in requests a window." })
} as const

type Details = typeof details

const detailsOf = <Code extends ErrorCode>(code: Code) =>
  // The compiler cannot check an expression against a conditional type.
  (code in details ? { details: details[code as keyof Details] } : {}) as Code extends keyof Details
    ? { readonly details: Details[Code] }
    : Record<never, never>

const message = text("What was wrong and what to do, for your developers; it may change.")

/** An error in its wire form. A 401 has exactly two fields: its request id is only in the header. */
export const errorObject = (
  { code, details, message }: Pick<ApiError, "code" | "message"> & { readonly details?: unknown },
  requestId: string
) => {
  if (code === "UNAUTHORIZED") return { error: { code, message } }
  return { error: { code, message, ...(details === undefined ? {} : { details }), requestId } }
}

/** The wire form of an error, for the API's definition. */
export const errorBody = <const Code extends ErrorCode>(code: Code) =>
  Schema.Struct({
    error: Schema.Struct({
      code: Schema.Literal(code),
      message,
      ...detailsOf(code),
      requestId: text("Also in the header X-Request-Id: names the request in the operator's log.", idPattern("req"))
    })
  }).annotations({ identifier: `Error.${code}`, ...HttpApiSchema.annotations({ status: statusOf[code] }) })

/** The wire form of several errors. */
export const errorBodies = (...codes: ReadonlyArray<ErrorCode>) => Schema.Union(...codes.map((code) => errorBody(code)))

/** What every endpoint that takes an `Idempotency-Key` can refuse because of it. */
export const idempotencyErrors = errorBodies("IDEMPOTENCY_KEY_IN_USE", "IDEMPOTENCY_KEY_REUSED")

/** The one error body without a request id: exactly these two fields. */
export const unauthorizedBody = Schema.Struct({
  error: Schema.Struct({ code: Schema.Literal("UNAUTHORIZED"), message })
}).annotations({ identifier: "Error.UNAUTHORIZED", ...HttpApiSchema.annotations({ status: statusOf.UNAUTHORIZED }) })
