import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Schema } from "effect"
import { ApiKeyAuth, RequiredPermission } from "../Auth/Api.ts"
import { errorBodies, errorBody, idempotencyErrors, withStatus } from "../Domain/ApiError.ts"
import { ChainName } from "../Domain/Chain.ts"
import { QuoteCurrency, QuoteObject } from "../Domain/Quote.ts"
import { alternatives, maybe, must, text } from "../lib/annotations.ts"

const currency = (about: string) =>
  must(`be ${alternatives(QuoteCurrency.literals)}`, QuoteCurrency, { about, log: "shown" })

const Amount = must(
  'be a decimal string above 0, such as "100.50", with at most 30 digits before the point and 18 after it',
  Schema.String.pipe(
    Schema.pattern(/^(0|[1-9][0-9]{0,29})(\.[0-9]{1,18})?$/),
    // No pattern: two become one that looks ahead, which many tools do not know.
    Schema.filter((text) => /[1-9]/.test(text))
  ),
  { about: "What is to be converted, in `fromCurrency`, with no more decimals than that has", log: "shown" }
)

const Chain = must(`be ${alternatives(ChainName.literals)}`, ChainName, {
  about: "The chain that the token is on; when absent ethereum, or the token's only chain",
  log: "shown"
})

/** The input of `POST /v1/quotes`. */
export const CreateQuoteBody = Schema.Struct({
  fromCurrency: currency("Source currency; MATIC is quoted, and no payment takes it"),
  toCurrency: currency("Target currency, another than the source; MATIC is quoted, and no payment takes it"),
  amount: Amount,
  chain: maybe(Chain)
}).annotations({ identifier: "CreateQuote", description: "What is to be priced. Unknown fields are refused." })

export const QuotesApi = HttpApiGroup.make("quotes")
  .add(
    HttpApiEndpoint.post("create", "/v1/quotes")
      .setPayload(CreateQuoteBody)
      .addSuccess(withStatus(201, QuoteObject))
      .addError(errorBodies("AMOUNT_TOO_SMALL", "RATE_UNAVAILABLE", "QUOTA_EXCEEDED"))
      .addError(idempotencyErrors)
      .annotate(RequiredPermission, "quotes:read")
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/quotes/:id")
      .setPath(Schema.Struct({ id: text("Identifier of the quote: `quote_…`.") }))
      .addSuccess(QuoteObject)
      .addError(errorBody("NOT_FOUND"))
      .annotate(RequiredPermission, "quotes:read")
  )
  .addError(errorBodies("VALIDATION_ERROR", "RATE_LIMITED"))
  .middleware(ApiKeyAuth)
