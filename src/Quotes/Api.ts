import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Schema } from "effect"
import { ApiKeyAuth, RequiredPermission } from "../Auth/Api.ts"
import { errorBody } from "../Domain/ApiError.ts"
import { ChainName } from "../Domain/Chain.ts"
import { alternatives, must } from "../Domain/must.ts"
import { QuoteCurrency, QuoteObject } from "../Domain/Quote.ts"

const Currency = must(`be ${alternatives(QuoteCurrency.literals)}`, QuoteCurrency)

const Amount = must(
  'be a decimal string above 0, such as "100.50", with at most 30 digits before the point and 18 after it',
  Schema.String.pipe(Schema.pattern(/^(0|[1-9][0-9]{0,29})(\.[0-9]{1,18})?$/), Schema.pattern(/[1-9]/))
)

/** What `POST /v1/quotes` takes. */
export const CreateQuoteBody = Schema.Struct({
  fromCurrency: Currency,
  toCurrency: Currency,
  amount: Amount,
  chain: Schema.optionalWith(must(`be ${alternatives(ChainName.literals)}`, ChainName), { exact: true })
}).annotations({ identifier: "CreateQuote" })

export const QuotesApi = HttpApiGroup.make("quotes")
  .add(
    HttpApiEndpoint.post("create", "/v1/quotes")
      .setPayload(CreateQuoteBody)
      .addSuccess(QuoteObject, { status: 201 })
      .addError(errorBody("AMOUNT_TOO_SMALL"))
      .addError(errorBody("RATE_UNAVAILABLE"))
      .addError(errorBody("IDEMPOTENCY_KEY_IN_USE"))
      .addError(errorBody("IDEMPOTENCY_KEY_REUSED"))
      .annotate(RequiredPermission, "quotes:read")
  )
  .addError(errorBody("VALIDATION_ERROR"))
  .addError(errorBody("RATE_LIMITED"))
  .middleware(ApiKeyAuth)
