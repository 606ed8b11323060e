import type {
  AccountedPayment,
  ChangePayment,
  ChangeWebhookEndpoint,
  Choose,
  CreateInvoice,
  CreatePayment,
  CreateQuote,
  CreateWebhookEndpoint,
  CurrencyList,
  DeletedWebhookEndpoint,
  Delivery,
  DeliveryPage,
  DeliveryWithAttempts,
  ExceptionPage,
  Invoice,
  InvoicePage,
  LedgerPage,
  LedgerRow,
  ListDeliveries,
  ListExceptions,
  ListInvoices,
  ListLedger,
  ListPayments,
  ListRefunds,
  NameRefund,
  Payment,
  PaymentException,
  PaymentPage,
  Quote,
  Redeliver,
  Redelivered,
  RedeliveredSome,
  RedeliverSome,
  Refund,
  RefundPage,
  RefundPayment,
  ResolveException,
  WebhookEndpoint,
  WebhookEndpointList
} from "./types.ts"

/** A payment as it is created: its chain and its token are configured. */
export interface CreatedPayment extends Payment {
  readonly chainId: number
  readonly decimals: number
}

export interface ClientOptions {
  /** Where tilld answers, without `/v1`: `https://pay.example.com`. A path is kept: `https://example.com/tilld/`. */
  readonly baseUrl: string
  /** `svc_live_…` or `svc_test_…`. */
  readonly apiKey: string
  /** Replaces the global `fetch`: to use a proxy, to trust a certificate authority, to trace requests. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** Milliseconds for each attempt, from its start to the end of the response. Default 30,000. */
  readonly timeoutMs?: number | undefined
  /**
   * Retries of a request that may succeed later. Default 2. Each may take `timeoutMs`, after a wait of up to a minute: pass a
   * `signal` where your caller does not wait that long.
   */
  readonly maxRetries?: number | undefined
}

export interface RequestOptions {
  /** Aborts the request, also while it waits for a retry: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

export interface CreateOptions extends RequestOptions {
  /**
   * 1 to 255 printable ASCII characters; random by default. For 24 hours the same request with the same key gets the first
   * response again. Pass one that you have stored, so that another process can repeat the request too.
   */
  readonly idempotencyKey?: string | undefined
}

/** Every method rejects with a `TilldError` for an error response, and with a `TilldConnectionError` without a response. */
export interface TilldClient {
  readonly currencies: {
    /** What payments can be made in, with the key's mode: each token on each chain that is configured. */
    readonly list: (options?: RequestOptions) => Promise<CurrencyList>
  }
  readonly quotes: {
    /** Requests a price, which holds for 30 seconds. A retry requests a new quote. */
    readonly create: (quote: CreateQuote, options?: RequestOptions) => Promise<Quote>
    readonly get: (id: string, options?: RequestOptions) => Promise<Quote>
  }
  readonly invoices: {
    /** Asks for a price: the customer chooses at `checkoutUrl` what to pay in. */
    readonly create: (invoice: CreateInvoice, options?: CreateOptions) => Promise<Invoice>
    readonly get: (id: string, options?: RequestOptions) => Promise<Invoice>
    /** Chooses for the customer, and makes the payment. */
    readonly choose: (id: string, choice: Choose, options?: CreateOptions) => Promise<Invoice>
    /** Ends an open invoice and its open payment. Repeating it does no harm. */
    readonly cancel: (id: string, options?: CreateOptions) => Promise<Invoice>
    /** One page, newest first. */
    readonly list: (query?: ListInvoices, options?: RequestOptions) => Promise<InvoicePage>
    /** All invoices from the newest, or from `cursor`, on. */
    readonly listAll: (query?: ListInvoices, options?: RequestOptions) => AsyncGenerator<Invoice, void, void>
  }
  readonly payments: {
    readonly create: (payment: CreatePayment, options?: CreateOptions) => Promise<CreatedPayment>
    readonly get: (id: string, options?: RequestOptions) => Promise<AccountedPayment>
    /** Sets keys of its metadata, and removes those that are null; the others stay. */
    readonly change: (id: string, change: ChangePayment, options?: CreateOptions) => Promise<AccountedPayment>
    /** Ends an open payment: it is `expired` then, or `failed` where money had come. Repeating it does no harm. */
    readonly cancel: (id: string, options?: CreateOptions) => Promise<AccountedPayment>
    /** Records that money of the payment goes back. The same refund with its `txHash` counts once. */
    readonly refund: (id: string, refund: RefundPayment, options?: CreateOptions) => Promise<Refund>
    /** One page, newest first. */
    readonly list: (query?: ListPayments, options?: RequestOptions) => Promise<PaymentPage>
    /** All payments from the newest, or from `cursor`, on. Pages, of `limit` payments or 100, are requested as needed. */
    readonly listAll: (query?: ListPayments, options?: RequestOptions) => AsyncGenerator<AccountedPayment, void, void>
  }
  readonly refunds: {
    readonly get: (id: string, options?: RequestOptions) => Promise<Refund>
    /** One page, newest first. */
    readonly list: (query?: ListRefunds, options?: RequestOptions) => Promise<RefundPage>
    /** Names the transaction of a refund without one, or whose one is not found. */
    readonly name: (id: string, named: NameRefund, options?: CreateOptions) => Promise<Refund>
    /** Ends a refund that was not made. */
    readonly drop: (id: string, options?: RequestOptions) => Promise<Refund>
  }
  readonly exceptions: {
    /** One page, newest first. */
    readonly list: (query?: ListExceptions, options?: RequestOptions) => Promise<ExceptionPage>
    /** All exceptions from the newest, or from `cursor`, on. */
    readonly listAll: (query?: ListExceptions, options?: RequestOptions) => AsyncGenerator<PaymentException, void, void>
    readonly get: (id: string, options?: RequestOptions) => Promise<PaymentException>
    /** Decides on one exception alone. The same decision again gives the same result. */
    readonly resolve: (id: string, decision: ResolveException, options?: CreateOptions) => Promise<PaymentException>
  }
  readonly ledger: {
    /** One page, newest first. */
    readonly list: (query?: ListLedger, options?: RequestOptions) => Promise<LedgerPage>
    /** All rows from the newest, or from `cursor`, on. */
    readonly listAll: (query?: ListLedger, options?: RequestOptions) => AsyncGenerator<LedgerRow, void, void>
  }
  readonly webhooks: {
    readonly create: (endpoint: CreateWebhookEndpoint, options?: CreateOptions) => Promise<WebhookEndpoint>
    readonly get: (id: string, options?: RequestOptions) => Promise<WebhookEndpoint>
    readonly list: (options?: RequestOptions) => Promise<WebhookEndpointList>
    /** Nothing that is pending is lost: it goes to the new URL, signed with the new secret. */
    readonly change: (id: string, change: ChangeWebhookEndpoint, options?: CreateOptions) => Promise<WebhookEndpoint>
    readonly delete: (id: string, options?: RequestOptions) => Promise<DeletedWebhookEndpoint>
  }
  readonly deliveries: {
    /** One page, newest first. */
    readonly list: (query?: ListDeliveries, options?: RequestOptions) => Promise<DeliveryPage>
    /** All deliveries from the newest, or from `cursor`, on. */
    readonly listAll: (query?: ListDeliveries, options?: RequestOptions) => AsyncGenerator<Delivery, void, void>
    readonly get: (id: string, options?: RequestOptions) => Promise<DeliveryWithAttempts>
    readonly redeliver: (id: string, redeliver?: Redeliver, options?: CreateOptions) => Promise<Redelivered>
    readonly redeliverSome: (selection?: RedeliverSome, options?: CreateOptions) => Promise<RedeliveredSome>
  }
}
