import type { ClientOptions, CreateOptions, RequestOptions, TilldClient } from "./client.ts"
import { makeSend, type Waiting } from "./transport.ts"

const largestPage = 100

const idempotencyKeyOf = ({ idempotencyKey = crypto.randomUUID() }: CreateOptions): string => {
  // fetch would cut spaces off at its ends, and the server would keep another key than the caller.
  if (!/^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(idempotencyKey)) {
    throw new TypeError("idempotencyKey must be 1 to 255 printable ASCII characters, without a space at its ends")
  }
  return idempotencyKey
}

const queryOf = (query: object): string => {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (typeof value === "object")
      for (const [key, each] of Object.entries(value)) params.set(`${name}[${key}]`, String(each))
    else if (value !== undefined) params.set(name, String(value))
  }
  return params.size === 0 ? "" : `?${params}`
}

interface Page<A> {
  readonly data: ReadonlyArray<A>
  readonly cursor: string | null
}

interface PageQuery {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** The rows of all pages, from the query's cursor on. */
async function* everything<Query extends PageQuery, A>(
  list: (query: Query, options?: RequestOptions) => Promise<Page<A>>,
  query: Query = {} as Query,
  options?: RequestOptions
): AsyncGenerator<A, void, void> {
  let cursor: string | null | undefined = query.cursor
  do {
    const page: Page<A> = await list({ limit: largestPage, ...query, cursor }, options)
    yield* page.data
    cursor = page.cursor
  } while (cursor !== null)
}

/** A client with a clock of the caller. */
export const makeClient = (options: ClientOptions, waiting: Waiting): TilldClient => {
  const send = makeSend(options, waiting)

  /** With a key of its own, so that repeating it makes nothing twice. */
  const once = async <A>(
    method: "POST" | "PATCH",
    path: string,
    body: unknown,
    settings: CreateOptions = {}
  ): Promise<A> => send({ method, path, body, idempotencyKey: idempotencyKeyOf(settings), signal: settings.signal })
  const post = <A>(path: string, body: unknown, settings?: CreateOptions): Promise<A> =>
    once("POST", path, body, settings)

  /** Two quotes do no harm, and the answer to a repeated request would be a quote that is over by then. */
  const quote: TilldClient["quotes"]["create"] = async (body, { signal } = {}) =>
    send({ method: "POST", path: "/v1/quotes", body, signal })

  const list: TilldClient["payments"]["list"] = (query = {}, { signal } = {}) =>
    send({ method: "GET", path: `/v1/payments${queryOf(query)}`, signal })

  const listExceptions: TilldClient["exceptions"]["list"] = (query = {}, { signal } = {}) =>
    send({ method: "GET", path: `/v1/exceptions${queryOf(query)}`, signal })

  const listLedger: TilldClient["ledger"]["list"] = (query = {}, { signal } = {}) =>
    send({ method: "GET", path: `/v1/ledger${queryOf(query)}`, signal })

  const listDeliveries: TilldClient["deliveries"]["list"] = (query = {}, { signal } = {}) =>
    send({ method: "GET", path: `/v1/deliveries${queryOf(query)}`, signal })

  return {
    quotes: {
      create: quote
    },
    payments: {
      create: (payment, settings) => post("/v1/payments", payment, settings),
      get: (id, { signal } = {}) => send({ method: "GET", path: `/v1/payments/${encodeURIComponent(id)}`, signal }),
      change: (id, change, settings) => once("PATCH", `/v1/payments/${encodeURIComponent(id)}`, change, settings),
      cancel: (id, settings) => post(`/v1/payments/${encodeURIComponent(id)}/cancel`, {}, settings),
      refund: (id, refund, settings) => post(`/v1/payments/${encodeURIComponent(id)}/refunds`, refund, settings),
      list,
      listAll: (query, settings) => everything(list, query, settings)
    },
    refunds: {
      get: (id, { signal } = {}) => send({ method: "GET", path: `/v1/refunds/${encodeURIComponent(id)}`, signal }),
      list: (query = {}, { signal } = {}) => send({ method: "GET", path: `/v1/refunds${queryOf(query)}`, signal }),
      name: (id, named, settings) => once("PATCH", `/v1/refunds/${encodeURIComponent(id)}`, named, settings),
      drop: (id, { signal } = {}) => send({ method: "DELETE", path: `/v1/refunds/${encodeURIComponent(id)}`, signal })
    },
    exceptions: {
      list: listExceptions,
      listAll: (query, settings) => everything(listExceptions, query, settings),
      resolve: (id, decision, settings) => post(`/v1/exceptions/${encodeURIComponent(id)}/resolve`, decision, settings)
    },
    ledger: {
      list: listLedger,
      listAll: (query, settings) => everything(listLedger, query, settings)
    },
    webhooks: {
      create: (endpoint, settings) => post("/v1/webhooks", endpoint, settings),
      list: ({ signal } = {}) => send({ method: "GET", path: "/v1/webhooks", signal }),
      change: (id, change, settings) => once("PATCH", `/v1/webhooks/${encodeURIComponent(id)}`, change, settings),
      delete: (id, { signal } = {}) =>
        send({
          method: "DELETE",
          path: `/v1/webhooks/${encodeURIComponent(id)}`,
          signal,
          ifGone: { id, deleted: true }
        })
    },
    deliveries: {
      list: listDeliveries,
      listAll: (query, settings) => everything(listDeliveries, query, settings),
      get: (id, { signal } = {}) => send({ method: "GET", path: `/v1/deliveries/${encodeURIComponent(id)}`, signal }),
      redeliver: (id, body = {}, settings) =>
        post(`/v1/deliveries/${encodeURIComponent(id)}/redeliver`, body, settings),
      redeliverSome: (body = {}, settings) => post("/v1/deliveries/redeliver", body, settings)
    }
  }
}
