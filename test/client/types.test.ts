// The types of the client are generated from the OpenAPI document (scripts/clientTypes.mjs). Here each is held against the schemas that the
// server decodes and encodes with, both ways: `tsc` is what fails, as "types" of `npm test`.
import type { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { expectTypeOf, it } from "vitest"
import type {
  AccountedPayment,
  ChangeWebhookEndpoint,
  CreatePayment,
  CreateQuote,
  CreateWebhookEndpoint,
  DeletedWebhookEndpoint,
  Delivery,
  DeliveryPage,
  DeliveryWithAttempts,
  ErrorCode,
  ExceptionPage,
  ListDeliveries,
  ListExceptions,
  ListPayments,
  Payment,
  PaymentException,
  PaymentPage,
  Quote,
  Redeliver,
  Redelivered,
  RedeliveredSome,
  RedeliverSome,
  ResolveException,
  WebhookEndpoint,
  WebhookEndpointList,
  WebhookEvent
} from "../../src/client/types.ts"
import type * as ApiError from "../../src/Domain/ApiError.ts"
import type { ChainName } from "../../src/Domain/Chain.ts"
import type * as DeliveryObjects from "../../src/Domain/DeliveryObject.ts"
import type * as Event from "../../src/Domain/Event.ts"
import type { AccountedPayment as AccountedObject } from "../../src/Domain/Event.ts"
import type { ExceptionObject } from "../../src/Domain/Exception.ts"
import type * as Domain from "../../src/Domain/Payment.ts"
import type * as DomainQuote from "../../src/Domain/Quote.ts"
import type * as Payments from "../../src/Payments/Api.ts"
import type * as Exceptions from "../../src/Payments/decisions/Api.ts"
import type * as Quotes from "../../src/Quotes/Api.ts"
import type * as Webhooks from "../../src/Webhooks/Api.ts"
import type * as Deliveries from "../../src/Webhooks/queue/Api.ts"

/** What is optional may be given as undefined too: JSON leaves it out. */
type Lenient<A> = { [K in keyof A]: Partial<Pick<A, K>> extends Pick<A, K> ? A[K] | undefined : A[K] }

/** What an endpoint of webhooks answers with. */
type Answer<Name extends string> = HttpApiEndpoint.HttpApiEndpoint.SuccessWithName<
  HttpApiGroup.HttpApiGroup.Endpoints<typeof Webhooks.WebhooksApi>,
  Name
>

/** Where the schemas say string or unknown, and the payment that they are made of says more. */
type Wide = "chain" | "currency" | "metadata"

it("requests have the types that the schemas accept", () => {
  expectTypeOf<Omit<CreatePayment, "metadata">>().toEqualTypeOf<
    Lenient<Omit<typeof Payments.CreatePaymentBody.Encoded, "metadata">>
  >()
  expectTypeOf<keyof CreatePayment>().toEqualTypeOf<keyof typeof Payments.CreatePaymentBody.Encoded>()
  expectTypeOf<CreateQuote>().toEqualTypeOf<Lenient<typeof Quotes.CreateQuoteBody.Encoded>>()
  expectTypeOf<CreateWebhookEndpoint>().toEqualTypeOf<typeof Webhooks.CreateEndpointBody.Encoded>()
  expectTypeOf<ChangeWebhookEndpoint>().toEqualTypeOf<Lenient<typeof Webhooks.ChangeEndpointBody.Encoded>>()
  expectTypeOf<ResolveException>().toEqualTypeOf<Lenient<typeof Exceptions.ResolveBody.Encoded>>()
  expectTypeOf<ListExceptions>().toEqualTypeOf<Lenient<typeof Exceptions.ListExceptionsQuery.Type>>()
  expectTypeOf<Redeliver>().toEqualTypeOf<Lenient<typeof Deliveries.RedeliverBody.Encoded>>()
  expectTypeOf<RedeliverSome>().toEqualTypeOf<Lenient<typeof Deliveries.RedeliverSomeBody.Encoded>>()
  expectTypeOf<keyof ListDeliveries>().toEqualTypeOf<keyof typeof Deliveries.ListDeliveriesQuery.Encoded>()
  // As a value, not as the text that it is in a URL; times are texts in both.
  type Times = "createdAfter" | "createdBefore"
  type ListedBy = typeof Payments.ListPaymentsQuery
  expectTypeOf<Omit<ListPayments, Times>>().toEqualTypeOf<Lenient<Omit<ListedBy["Type"], Times>>>()
  expectTypeOf<Pick<ListPayments, Times>>().toEqualTypeOf<Lenient<Pick<ListedBy["Encoded"], Times>>>()
})

it("responses have the types of the schemas", () => {
  expectTypeOf<Omit<Payment, Wide>>().toEqualTypeOf<Omit<typeof Domain.PaymentObject.Encoded, Wide>>()
  expectTypeOf<keyof Payment>().toEqualTypeOf<keyof typeof Domain.PaymentObject.Encoded>()
  expectTypeOf<Pick<Payment, "chain" | "currency">>().toEqualTypeOf<Pick<Domain.Payment, "chain" | "currency">>()
  expectTypeOf<Omit<AccountedPayment, Wide>>().toEqualTypeOf<Omit<typeof AccountedObject.Encoded, Wide>>()
  expectTypeOf<PaymentException>().toEqualTypeOf<typeof ExceptionObject.Encoded>()
  expectTypeOf<ExceptionPage>().toEqualTypeOf<typeof Exceptions.ExceptionPage.Encoded>()
  expectTypeOf<Omit<PaymentPage, "data">>().toEqualTypeOf<Omit<typeof Payments.PaymentPage.Encoded, "data">>()
  expectTypeOf<keyof PaymentPage>().toEqualTypeOf<keyof typeof Payments.PaymentPage.Encoded>()

  expectTypeOf<Omit<Quote, "chain">>().toEqualTypeOf<Omit<typeof DomainQuote.QuoteObject.Encoded, "chain">>()
  expectTypeOf<Quote["chain"]>().toEqualTypeOf<ChainName>()

  expectTypeOf<WebhookEndpoint>().toEqualTypeOf<typeof Webhooks.EndpointObject.Encoded>()
  expectTypeOf<WebhookEndpoint>().toEqualTypeOf<Answer<"create">>()
  expectTypeOf<WebhookEndpointList>().toEqualTypeOf<Answer<"list">>()
  expectTypeOf<DeletedWebhookEndpoint>().toEqualTypeOf<Answer<"remove">>()

  expectTypeOf<Delivery>().toEqualTypeOf<typeof DeliveryObjects.DeliveryObject.Encoded>()
  expectTypeOf<DeliveryWithAttempts>().toEqualTypeOf<typeof DeliveryObjects.DeliveryWithAttempts.Encoded>()
  expectTypeOf<DeliveryPage>().toEqualTypeOf<typeof Deliveries.DeliveryPage.Encoded>()
  expectTypeOf<Redelivered>().toEqualTypeOf<typeof Deliveries.Redelivered.Encoded>()
  expectTypeOf<RedeliveredSome>().toEqualTypeOf<typeof Deliveries.RedeliveredSome.Encoded>()

  expectTypeOf<Omit<WebhookEvent, "data">>().toEqualTypeOf<Omit<typeof Event.WebhookEvent.Encoded, "data">>()
  expectTypeOf<keyof WebhookEvent>().toEqualTypeOf<keyof typeof Event.WebhookEvent.Encoded>()
  expectTypeOf<ErrorCode>().toEqualTypeOf<ApiError.ErrorCode>()
})
