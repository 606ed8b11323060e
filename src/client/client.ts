import type {
  AccountedPayment,
  CreatePayment,
  CreateQuote,
  CreateWebhookEndpoint,
  DeletedWebhookEndpoint,
  ListPayments,
  Payment,
  PaymentPage,
  Quote,
  WebhookEndpoint,
  WebhookEndpointList
} from "./types.ts"

export interface ClientOptions {
  /** Where tilld answers, without `/v1`: `https://pay.example.com`. A path is kept: `https://example.com/tilld/`. */
  readonly baseUrl: string
  /** `svc_live_…` or `svc_test_…`. */
  readonly apiKey: string
  /** In place of the global `fetch`: to go through a proxy, to trust an authority, to watch what is sent. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** Milliseconds for each attempt, from its start to the end of the answer. Default 30,000. */
  readonly timeoutMs?: number | undefined
  /**
   * How often a request is repeated when it may succeed then. Default 2. Each may take `timeoutMs`, after a wait of up to
   * a minute: give a `signal` where somebody waits for you.
   */
  readonly maxRetries?: number | undefined
}

export interface RequestOptions {
  /** Gives up, also while waiting for a retry: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

export interface CreateOptions extends RequestOptions {
  /**
   * 1 to 255 printable ASCII characters; a random one unless given. Within 24 hours the same request with the same key
   * is answered as the first time. Give one that you have stored, and a request can be repeated by another process too.
   */
  readonly idempotencyKey?: string | undefined
}

/** Every method rejects with a `TilldError` when tilld refuses, and with a `TilldConnectionError` without an answer. */
export interface TilldClient {
  readonly quotes: {
    /** Asks for a price, which holds for 30 seconds. A retry asks anew. */
    readonly create: (quote: CreateQuote, options?: RequestOptions) => Promise<Quote>
  }
  readonly payments: {
    readonly create: (payment: CreatePayment, options?: CreateOptions) => Promise<Payment>
    readonly get: (id: string, options?: RequestOptions) => Promise<AccountedPayment>
    /** One page, newest first. */
    readonly list: (query?: ListPayments, options?: RequestOptions) => Promise<PaymentPage>
    /** All payments from the newest on, or from `cursor` on. Pages, of 100 unless `limit` says, are asked for as needed. */
    readonly listAll: (query?: ListPayments, options?: RequestOptions) => AsyncGenerator<AccountedPayment, void, void>
  }
  readonly webhooks: {
    readonly create: (endpoint: CreateWebhookEndpoint, options?: CreateOptions) => Promise<WebhookEndpoint>
    readonly list: (options?: RequestOptions) => Promise<WebhookEndpointList>
    readonly delete: (id: string, options?: RequestOptions) => Promise<DeletedWebhookEndpoint>
  }
}
