import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Effect, Schema } from "effect"
import { ApiKeyAuth, CurrentKey, RequiredPermission } from "../Auth/Api.ts"
import { BaseUnits } from "../Domain/Amount.ts"
import { errorBody } from "../Domain/ApiError.ts"
import { ChainName } from "../Domain/Chain.ts"
import { PaymentCurrency } from "../Domain/Currency.ts"
import { ExceptionObject } from "../Domain/Exception.ts"
import { Metadata } from "../Domain/Metadata.ts"
import { alternatives, must } from "../Domain/must.ts"
import { PaymentObject, StatusFilter } from "../Domain/Payment.ts"
import { cursorParameter, limitParameter } from "../Domain/queryParameters.ts"
import { text } from "../Domain/textSchemas.ts"
import { HttpsUrl, maxUrlLength, parseUrl } from "../Domain/Url.ts"
import { withStatus } from "../Domain/withStatus.ts"

const optional = { exact: true } as const

const MerchantRef = must(
  "be a string of 1 to 128 printable characters",
  // Control characters, invisible ones and half characters would make two references look like one.
  Schema.String.pipe(Schema.pattern(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]{1,128}$/u)),
  { about: "Your own reference, once for ever in an account and mode" }
)

const Amount = Schema.transform(
  must(
    'be a string of digits in the smallest unit of the token, without sign or leading zero, such as "1000000", and at most 2^256 - 1',
    BaseUnits,
    { about: "What is to be paid" }
  ),
  Schema.BigIntFromSelf,
  { strict: true, decode: BigInt, encode: String }
)

const Currency = must(`be ${alternatives(PaymentCurrency.literals)}; MATIC is quoted, not taken`, PaymentCurrency, {
  about: "The token to be paid in"
})
const Chain = must(`be ${alternatives(ChainName.literals)}`, ChainName, { about: "The chain to be paid on" })

const ExpiresIn = must(
  "be an integer from 60 to 86400, in seconds",
  Schema.Number.pipe(Schema.int(), Schema.between(60, 86_400)),
  { about: "How long there is to pay", json: { default: 3600 } }
)

const isLocalhost = (url: URL): boolean =>
  url.hostname === "localhost" || url.hostname.endsWith(".localhost") || ["127.0.0.1", "[::1]"].includes(url.hostname)

const RedirectUrl = must(
  `be an https URL of at most ${maxUrlLength} characters, without user info; http is possible on localhost with a test key`,
  Schema.String.pipe(
    Schema.filterEffect((text) =>
      Effect.map(CurrentKey, ({ mode }) => {
        const url = parseUrl(text)
        if (url === undefined) return false
        return url.protocol === "https:" || (url.protocol === "http:" && mode === "test" && isLocalhost(url))
      })
    )
  ),
  { about: "Where the customer goes after paying", json: { format: "uri", maxLength: maxUrlLength } }
)

const WebhookUrl = HttpsUrl.annotations({
  jsonSchema: {
    type: "string",
    format: "uri",
    maxLength: maxUrlLength,
    description:
      "Gets every event of this payment, signed with the account's default secret, or with the endpoint's own where it is a registered one. Must be an https URL without user info, to a public address."
  }
})

const QuoteId = must("be the id of a quote", Schema.String, { about: "Locks the quote's rate for this payment" })

/** What `POST /v1/payments` takes. */
export const CreatePaymentBody = Schema.Struct({
  merchantRef: MerchantRef,
  amount: Amount,
  currency: Currency,
  chain: Chain,
  webhookUrl: Schema.optionalWith(WebhookUrl, optional),
  redirectUrl: Schema.optionalWith(RedirectUrl, optional),
  expiresIn: Schema.optionalWith(ExpiresIn, optional),
  metadata: Schema.optionalWith(Metadata, optional),
  quoteId: Schema.optionalWith(QuoteId, optional)
}).annotations({ identifier: "CreatePayment", description: "What is to be paid. Unknown fields are refused." })

const Status = must(`be ${alternatives(StatusFilter.literals)}`, StatusFilter, {
  about: "Only payments in this status; `pending` does not include `detecting`"
})

/** The query of `GET /v1/payments`. */
export const ListPaymentsQuery = Schema.Struct({
  status: Schema.optionalWith(Status, optional),
  chain: Schema.optionalWith(
    must(`be ${alternatives(ChainName.literals)}`, ChainName, { about: "Only payments on this chain" }),
    optional
  ),
  limit: limitParameter("Payments"),
  cursor: cursorParameter
})

/** A payment, with the money that needs or needed a person when there is any. Events do not carry that. */
export const AccountedPayment = Schema.Struct({
  ...PaymentObject.fields,
  exceptions: Schema.optionalWith(
    Schema.Array(ExceptionObject).annotations({
      description:
        "Money that came and does not fit, when there is any. What is open comes first, and of that `found_late` and `reorged`; at most 100."
    }),
    optional
  ),
  moreExceptions: Schema.optionalWith(
    Schema.Literal(true).annotations({
      description:
        "Set when there are more than are shown: the operator lists them all with `tilld payments exceptions`."
    }),
    optional
  )
}).annotations({
  identifier: "AccountedPayment",
  description: "A payment, with the money that does not fit it. Fields that do not apply yet are absent, never null."
})

/** Newest first. `cursor` asks for the next page; null at the end. */
export const PaymentPage = Schema.Struct({
  data: Schema.Array(AccountedPayment).annotations({ description: "Newest first." }),
  cursor: Schema.NullOr(Schema.String).annotations({ description: "Asks for the next page; null at the end." })
}).annotations({ identifier: "PaymentPage", description: "A page of payments." })

const Path = Schema.Struct({ id: text("Identifier of the payment: `pay_…`.") })

export const PaymentsApi = HttpApiGroup.make("payments")
  .add(
    HttpApiEndpoint.post("create", "/v1/payments")
      .setPayload(CreatePaymentBody)
      .addSuccess(withStatus(201, PaymentObject))
      .addError(errorBody("DUPLICATE_MERCHANT_REF"))
      .addError(errorBody("QUOTE_ALREADY_USED"))
      .addError(errorBody("QUOTE_EXPIRED"))
      .addError(errorBody("QUOTE_MISMATCH"))
      .addError(errorBody("QUOTE_NOT_FOUND"))
      .addError(errorBody("IDEMPOTENCY_KEY_IN_USE"))
      .addError(errorBody("IDEMPOTENCY_KEY_REUSED"))
      .addError(errorBody("WALLET_NOT_CONFIGURED"))
      .addError(errorBody("QUOTA_EXCEEDED"))
      .annotate(RequiredPermission, "payments:write")
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/payments/:id")
      .setPath(Path)
      .addSuccess(AccountedPayment)
      .addError(errorBody("NOT_FOUND"))
      .annotate(RequiredPermission, "payments:read")
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/payments")
      .setUrlParams(ListPaymentsQuery)
      .addSuccess(PaymentPage)
      .addError(errorBody("INVALID_CURSOR"))
      .annotate(RequiredPermission, "payments:read")
  )
  .addError(errorBody("VALIDATION_ERROR"))
  .addError(errorBody("RATE_LIMITED"))
  .middleware(ApiKeyAuth)
