import { HttpApi } from "@effect/platform"
import { LedgerApi } from "./Books/Api.ts"
import { EventsApi } from "./Events/Api.ts"
import { DocumentsApi, HealthApi } from "./Http/Api.ts"
import { InvoicesApi } from "./Invoices/Api.ts"
import { PaymentsApi } from "./Payments/Api.ts"
import { ExceptionsApi, RefundsApi } from "./Payments/decisions/Api.ts"
import { QuotesApi } from "./Quotes/Api.ts"
import { WebhooksApi } from "./Webhooks/Api.ts"
import { DeliveriesApi } from "./Webhooks/queue/Api.ts"

/** The definition of the HTTP API: `Server.ts` serves it, `Documents` describes it. */
export const Api = HttpApi.make("tilld")
  .add(PaymentsApi)
  .add(InvoicesApi)
  .add(ExceptionsApi)
  .add(RefundsApi)
  .add(LedgerApi)
  .add(WebhooksApi)
  .add(DeliveriesApi)
  .add(QuotesApi)
  .add(EventsApi)
  .add(HealthApi)
  .add(DocumentsApi)
