import { Schema } from "effect"
import { endpointsFor, keyedGroup } from "../Auth/Api.ts"
import { withStatus } from "../Domain/ApiError.ts"
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

const { get, post } = endpointsFor("quotes:read", "quotes:read")

export const QuotesApi = keyedGroup("quotes")
  .add(
    post("create", "/v1/quotes", "AMOUNT_TOO_SMALL", "RATE_UNAVAILABLE", "QUOTA_EXCEEDED")
      .setPayload(CreateQuoteBody)
      .addSuccess(withStatus(201, QuoteObject))
  )
  .add(
    get("get", "/v1/quotes/:id", "NOT_FOUND")
      .setPath(Schema.Struct({ id: text("Identifier of the quote: `quote_…`.") }))
      .addSuccess(QuoteObject)
  )
