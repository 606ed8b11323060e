import { HttpApi } from "@effect/platform"
import { EventsApi } from "./Events/Api.ts"
import { DocumentsApi, HealthApi } from "./Http/Api.ts"
import { PaymentsApi } from "./Payments/Api.ts"
import { QuotesApi } from "./Quotes/Api.ts"
import { WebhooksApi } from "./Webhooks/Api.ts"

/** The whole HTTP API as data: what it serves, what its documents say. */
export const Api = HttpApi.make("tilld")
  .add(PaymentsApi)
  .add(WebhooksApi)
  .add(QuotesApi)
  .add(EventsApi)
  .add(HealthApi)
  .add(DocumentsApi)
