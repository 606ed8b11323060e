import type { ClientOptions, CreateOptions, TilldClient } from "./client.ts"
import { makeSend, type Waiting } from "./transport.ts"
import type { ListPayments, PaymentPage } from "./types.ts"

const largestPage = 100

const idempotencyKeyOf = ({ idempotencyKey = crypto.randomUUID() }: CreateOptions): string => {
  // fetch would cut spaces off at its ends, and the server would keep another key than the caller.
  if (!/^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(idempotencyKey)) {
    throw new TypeError("idempotencyKey must be 1 to 255 printable ASCII characters, without a space at its ends")
  }
  return idempotencyKey
}

const queryOf = (query: ListPayments): string => {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) params.set(name, String(value))
  }
  return params.size === 0 ? "" : `?${params}`
}

/** A client that waits as it is told. */
export const makeClient = (options: ClientOptions, waiting: Waiting): TilldClient => {
  const send = makeSend(options, waiting)

  /** With a key of its own, so that repeating it makes nothing twice. */
  const post = async <A>(path: string, body: unknown, settings: CreateOptions = {}): Promise<A> =>
    send({ method: "POST", path, body, idempotencyKey: idempotencyKeyOf(settings), signal: settings.signal })

  /** Two quotes do no harm, and the answer to a repeated request would be a quote that is over by then. */
  const quote: TilldClient["quotes"]["create"] = async (body, { signal } = {}) =>
    send({ method: "POST", path: "/v1/quotes", body, signal })

  const list: TilldClient["payments"]["list"] = (query = {}, { signal } = {}) =>
    send({ method: "GET", path: `/v1/payments${queryOf(query)}`, signal })

  return {
    quotes: {
      create: quote
    },
    payments: {
      create: (payment, settings) => post("/v1/payments", payment, settings),
      get: (id, { signal } = {}) => send({ method: "GET", path: `/v1/payments/${encodeURIComponent(id)}`, signal }),
      list,
      listAll: async function* (query = {}, settings) {
        let cursor: string | null | undefined = query.cursor
        do {
          const page: PaymentPage = await list({ limit: largestPage, ...query, cursor }, settings)
          yield* page.data
          cursor = page.cursor
        } while (cursor !== null)
      }
    },
    webhooks: {
      create: (endpoint, settings) => post("/v1/webhooks", endpoint, settings),
      list: ({ signal } = {}) => send({ method: "GET", path: "/v1/webhooks", signal }),
      delete: (id, { signal } = {}) =>
        send({
          method: "DELETE",
          path: `/v1/webhooks/${encodeURIComponent(id)}`,
          signal,
          ifGone: { id, deleted: true }
        })
    }
  }
}
