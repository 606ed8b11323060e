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

/** A list, and the rows of all its pages from the query's cursor on. */
const pagesOf = <Query extends PageQuery, A>(list: (query?: Query, options?: RequestOptions) => Promise<Page<A>>) => ({
  list,
  listAll: async function* (query: Query = {} as Query, options?: RequestOptions): AsyncGenerator<A, void, void> {
    let cursor: string | null | undefined = query.cursor
    do {
      const page: Page<A> = await list({ limit: largestPage, ...query, cursor }, options)
      yield* page.data
      cursor = page.cursor
    } while (cursor !== null)
  }
})

/** Where one object is, by an id from outside. */
const at = (path: string, id: string): string => `${path}/${encodeURIComponent(id)}`

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

  const get = <A>(path: string, { signal }: RequestOptions = {}): Promise<A> => send({ method: "GET", path, signal })
  const pages = <Query extends PageQuery, A>(path: string) =>
    pagesOf<Query, A>((query = {} as Query, options) => get(path + queryOf(query), options))

  return {
    currencies: { list: (options) => get("/v1/currencies", options) },
    quotes: {
      // Two quotes do no harm, and the answer to a repeated request would be a quote that is over by then.
      create: async (body, { signal } = {}) => send({ method: "POST", path: "/v1/quotes", body, signal }),
      get: (id, options) => get(at("/v1/quotes", id), options)
    },
    invoices: {
      ...pages("/v1/invoices"),
      create: (invoice, settings) => post("/v1/invoices", invoice, settings),
      get: (id, options) => get(at("/v1/invoices", id), options),
      choose: (id, choice, settings) => post(`${at("/v1/invoices", id)}/choose`, choice, settings),
      cancel: (id, settings) => post(`${at("/v1/invoices", id)}/cancel`, {}, settings)
    },
    payments: {
      ...pages("/v1/payments"),
      create: (payment, settings) => post("/v1/payments", payment, settings),
      get: (id, options) => get(at("/v1/payments", id), options),
      change: (id, change, settings) => once("PATCH", at("/v1/payments", id), change, settings),
      cancel: (id, settings) => post(`${at("/v1/payments", id)}/cancel`, {}, settings),
      refund: (id, refund, settings) => post(`${at("/v1/payments", id)}/refunds`, refund, settings)
    },
    refunds: {
      get: (id, options) => get(at("/v1/refunds", id), options),
      list: (query = {}, options) => get(`/v1/refunds${queryOf(query)}`, options),
      name: (id, named, settings) => once("PATCH", at("/v1/refunds", id), named, settings),
      drop: (id, { signal } = {}) => send({ method: "DELETE", path: at("/v1/refunds", id), signal })
    },
    exceptions: {
      ...pages("/v1/exceptions"),
      get: (id, options) => get(at("/v1/exceptions", id), options),
      resolve: (id, decision, settings) => post(`${at("/v1/exceptions", id)}/resolve`, decision, settings)
    },
    ledger: pages("/v1/ledger"),
    webhooks: {
      create: (endpoint, settings) => post("/v1/webhooks", endpoint, settings),
      get: (id, options) => get(at("/v1/webhooks", id), options),
      list: (options) => get("/v1/webhooks", options),
      change: (id, change, settings) => once("PATCH", at("/v1/webhooks", id), change, settings),
      delete: (id, { signal } = {}) =>
        send({ method: "DELETE", path: at("/v1/webhooks", id), signal, ifGone: { id, deleted: true } })
    },
    deliveries: {
      ...pages("/v1/deliveries"),
      get: (id, options) => get(at("/v1/deliveries", id), options),
      redeliver: (id, body = {}, settings) => post(`${at("/v1/deliveries", id)}/redeliver`, body, settings),
      redeliverSome: (body = {}, settings) => post("/v1/deliveries/redeliver", body, settings)
    }
  }
}
