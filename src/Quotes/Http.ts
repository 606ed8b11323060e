import { Effect } from "effect"
import type { QuotaExceeded } from "../Domain/Account.ts"
import { ApiError, invalid, mustFind, quotaExceeded } from "../Domain/ApiError.ts"
import { answer, type Handlers, storeReplayAs } from "../Http/Handler.ts"
import { type AmountTooSmall, type QuoteImpossible, Quotes, type RateUnavailable } from "../Quotes.ts"
import type { QuotesApi } from "./Api.ts"

const retrySeconds = "10"

export const quotingRefusal = (error: QuoteImpossible | RateUnavailable | AmountTooSmall | QuotaExceeded): ApiError => {
  switch (error._tag) {
    case "QuoteImpossible":
      return invalid(error.problems)
    case "QuotaExceeded":
      return quotaExceeded(error)
    case "RateUnavailable":
      return new ApiError({
        code: "RATE_UNAVAILABLE",
        message: error.message,
        headers: { "retry-after": retrySeconds }
      })
    case "AmountTooSmall":
      return new ApiError({
        code: "AMOUNT_TOO_SMALL",
        message: "The fees are as much as the amount or more: ask for a larger one.",
        details: { gross: error.gross, fees: error.fees }
      })
  }
}

export const quoteHandlers = Effect.map(
  Quotes,
  (quotes): Handlers<typeof QuotesApi> => ({
    create: ({ key, payload, storeReplay }) =>
      quotes.create(key, payload, storeReplayAs(storeReplay, answer)).pipe(
        Effect.mapBoth({
          onFailure: (error) => (error._tag === "StoreUnavailable" ? error : quotingRefusal(error)),
          onSuccess: (quote) => answer(quote)
        })
      ),
    get: ({ key, path: { id } }) => Effect.map(mustFind("quote", quotes.get(key, id)), (quote) => answer(quote))
  })
)
